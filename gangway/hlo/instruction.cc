#include "gangway/hlo/instruction.h"

#include <algorithm>

#include "gangway/hlo/computation.h"

namespace gangway::hlo {
namespace {

void RemoveOneUse(std::vector<Instruction*>* users, const Instruction* user) {
  auto it = std::find(users->begin(), users->end(), user);
  if (it != users->end()) users->erase(it);
}

}  // namespace

void Instruction::ReplaceOperand(int64_t i, Instruction* with) {
  if (operands_[i] == with) return;
  RemoveOneUse(&operands_[i]->users_, this);
  operands_[i] = with;
  with->users_.push_back(this);
}

void Instruction::ReplaceAllUsesWith(Instruction* with) {
  if (with == this) return;
  std::vector<Instruction*> users = std::move(users_);
  users_.clear();
  for (Instruction* user : users) {
    if (user == with) {  // `with` may be computed from this instruction: that use stays
      users_.push_back(user);
      continue;
    }
    auto slot = std::find(user->operands_.begin(), user->operands_.end(), this);
    *slot = with;
    with->users_.push_back(user);
  }
  if (parent_->root_ == this) parent_->root_ = with;
}

bool Instruction::IsRoot() const { return parent_->root_ == this; }

bool Instruction::HasSideEffect() const {
  switch (opcode_) {
    case Opcode::kSend:
    case Opcode::kSendDone:
    case Opcode::kRecv:
    case Opcode::kRecvDone:
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kRng:
    case Opcode::kRngGetAndUpdateState:
      return true;
    case Opcode::kCustomCall:
      return attr<CustomCallAttr>().has_side_effect;
    case Opcode::kCall:
    case Opcode::kWhile:
    case Opcode::kConditional:
      for (const Computation* computation : called_) {
        for (const auto& instruction : computation->instructions()) {
          if (instruction->HasSideEffect()) return true;
        }
      }
      return false;
    default:
      return false;
  }
}

}  // namespace gangway::hlo
