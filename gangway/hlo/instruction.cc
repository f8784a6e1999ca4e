#include "gangway/hlo/instruction.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gangway/hlo/computation.h"

namespace gangway::hlo {
namespace {

void RemoveOneUse(std::vector<Instruction*>* users, const Instruction* user) {
  auto it = std::find(users->begin(), users->end(), user);
  if (it != users->end()) users->erase(it);
}

bool HasOwnSideEffect(const Instruction& instruction) {
  switch (instruction.opcode()) {
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
      return instruction.attr<CustomCallAttr>().has_side_effect;
    default:
      return false;
  }
}

bool RunsItsComputations(Opcode opcode) {
  return opcode == Opcode::kCall || opcode == Opcode::kWhile || opcode == Opcode::kConditional;
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
  if (HasOwnSideEffect(*this)) return true;
  if (!RunsItsComputations(opcode_)) return false;
  // Each computation is looked at once, and without recursion: a program may call one many times over, or very deeply.
  absl::flat_hash_set<const Computation*> seen(called_.begin(), called_.end());
  std::vector<const Computation*> waiting(seen.begin(), seen.end());
  while (!waiting.empty()) {
    const Computation* computation = waiting.back();
    waiting.pop_back();
    for (const auto& instruction : computation->instructions()) {
      if (HasOwnSideEffect(*instruction)) return true;
      if (!RunsItsComputations(instruction->opcode())) continue;
      for (const Computation* callee : instruction->called()) {
        if (seen.insert(callee).second) waiting.push_back(callee);
      }
    }
  }
  return false;
}

}  // namespace gangway::hlo
