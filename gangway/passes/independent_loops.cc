// A loop that goes on while any device has something left to do need not ask the others: each device stops when it is
// done itself.
//
//   while (all-reduce-or(any(p(s))))  s = select(p(s), f(s), s)      becomes      while (any(p(s)))  ...
//
// Sound when a device whose own part of the question is false would not change anything in further steps, and when
// nothing in the loop needs the other devices. This is what vmap of a while loop becomes, split along the batch.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gangway/hlo/halves.h"
#include "gangway/hlo/same_operation.h"
#include "gangway/passes/loop.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool MeetsOtherDevices(const Instruction& i) {
  return hlo::IsCollective(i.opcode()) || i.HasSideEffect() || i.opcode() == Opcode::kCustomCall ||
         hlo::IsStart(i.opcode());
}

// No instruction of the computation or of what it calls, but `except`, needs other devices.
bool IsLocal(const Computation& computation, const Instruction* except) {
  std::vector<const Computation*> open = {&computation};
  absl::flat_hash_set<const Computation*> seen;
  while (!open.empty()) {
    const Computation* top = open.back();
    open.pop_back();
    if (!seen.insert(top).second) continue;
    for (const auto& i : top->instructions()) {
      if (i.get() == except) continue;
      if (MeetsOtherDevices(*i)) return false;
      open.insert(open.end(), i->called().begin(), i->called().end());
    }
  }
  return true;
}

// Values of two computations over the same state that are equal by construction.
class SameValues {
 public:
  SameValues(const Instruction* one_state, const Instruction* other_state)
      : one_state_(one_state), other_state_(other_state) {}

  bool Equal(const Instruction* one, const Instruction* other) {
    std::vector<std::pair<const Instruction*, const Instruction*>> open = {{one, other}};
    while (!open.empty()) {
      const auto [a, b] = open.back();
      open.pop_back();
      if (auto known = partner_.find(a); known != partner_.end()) {
        if (known->second != b) return false;
        continue;
      }
      if (a == one_state_ || b == other_state_) {
        if (a != one_state_ || b != other_state_) return false;
        continue;
      }
      if (!hlo::SameOperation(*a, *b)) return false;
      partner_[a] = b;
      for (int64_t k = 0; k < a->operand_count(); ++k) open.emplace_back(a->operand(k), b->operand(k));
    }
    return true;
  }

 private:
  const Instruction *one_state_, *other_state_;
  absl::flat_hash_map<const Instruction*, const Instruction*> partner_;
};

class Independence {
 public:
  explicit Independence(const Loop& loop) : loop_(loop) {}

  bool Run() {
    Instruction* question = Question();
    if (question == nullptr || !IsLocal(*loop_.condition, question) || !IsLocal(*loop_.body, nullptr)) return false;
    const Instruction* asked = AskedOf(question->operand(0));
    if (asked == nullptr) return false;
    FindFrozen(asked);
    if (!OthersAreUnused() || !DependsOnFrozenOnly(asked)) return false;
    question->ReplaceAllUsesWith(question->operand(0));
    return true;
  }

 private:
  // The one all-reduce of the condition, reached from its root through "and" alone.
  Instruction* Question() const {
    std::vector<Instruction*> open = {loop_.condition->root()};
    Instruction* found = nullptr;
    while (!open.empty()) {
      Instruction* top = open.back();
      open.pop_back();
      if (top->opcode() == Opcode::kAnd) {
        open.insert(open.end(), top->operands().begin(), top->operands().end());
      } else if (top->opcode() == Opcode::kAllReduce && top->shape().IsArray()) {
        const Computation& combiner = *top->called()[0];
        if (found != nullptr || combiner.size() != 3 || combiner.root()->opcode() != Opcode::kOr) return nullptr;
        if (top->users().size() > 1 || !top->control_predecessors().empty()) return nullptr;
        found = top;
      }
    }
    return found;
  }

  // The truths of which the condition asks whether there is any.
  static const Instruction* AskedOf(const Instruction* any) {
    while (any->opcode() == Opcode::kReshape || any->opcode() == Opcode::kCopy) any = any->operand(0);
    if (any->opcode() != Opcode::kReduce) return any->shape().rank() == 0 ? any : nullptr;
    const bool is_any = any->operand_count() == 2 && any->called()[0]->root()->opcode() == Opcode::kOr &&
                        any->called()[0]->size() == 3 && any->operand(1)->opcode() == Opcode::kConstant &&
                        any->operand(1)->attr<hlo::ConstantAttr>().literal->data()[0] == 0;
    return is_any ? any->operand(0) : nullptr;
  }

  // Elements that the body leaves as they are where nothing is asked for.
  void FindFrozen(const Instruction* asked) {
    frozen_.assign(loop_.size, false);
    for (int64_t index = 0; index < loop_.size; ++index) {
      const Instruction* next = loop_.body_root()->operand(index);
      if (loop_.PassesThrough(index)) {
        frozen_[index] = true;
      } else if (next->opcode() == Opcode::kSelect && IsRead(next->operand(2), index)) {
        frozen_[index] = FalseWithout(next->operand(0), asked);
      }
    }
  }

  bool IsRead(const Instruction* i, int64_t index) const {
    return i->opcode() == Opcode::kGetTupleElement && i->operand(0) == loop_.body_state() && ElementIndex(i) == index;
  }

  // All elements of `mask` are false when all of `asked` are.
  bool FalseWithout(const Instruction* mask, const Instruction* asked) const {
    std::vector<const Instruction*> open = {mask};
    while (!open.empty()) {
      const Instruction* top = open.back();
      open.pop_back();
      if (Shape::Compatible(top->shape(), asked->shape()) &&
          SameValues(loop_.condition_state(), loop_.body_state()).Equal(asked, top)) {
        return true;
      }
      switch (top->opcode()) {
        case Opcode::kBroadcast:
        case Opcode::kReshape:
        case Opcode::kTranspose:
        case Opcode::kSlice:
        case Opcode::kCopy:
        case Opcode::kAnd:  // one of the two is enough
          open.insert(open.end(), top->operands().begin(), top->operands().end());
          break;
        default:
          break;
      }
    }
    return false;
  }

  bool OthersAreUnused() const {
    for (int64_t index = 0; index < loop_.size; ++index) {
      if (frozen_[index]) continue;
      if (loop_.IsTakenWhole()) return false;
      for (const Instruction* element : ElementsOf(loop_.loop, index)) {
        if (!element->users().empty() || element->IsRoot()) return false;
      }
    }
    return true;
  }

  bool DependsOnFrozenOnly(const Instruction* asked) const {
    std::vector<const Instruction*> open = {asked};
    absl::flat_hash_set<const Instruction*> seen;
    while (!open.empty()) {
      const Instruction* top = open.back();
      open.pop_back();
      if (!seen.insert(top).second) continue;
      if (top->opcode() == Opcode::kGetTupleElement && top->operand(0) == loop_.condition_state()) {
        if (!frozen_[ElementIndex(top)]) return false;
        continue;
      }
      if (top->opcode() == Opcode::kRng) return false;
      open.insert(open.end(), top->operands().begin(), top->operands().end());
    }
    return true;
  }

  const Loop& loop_;
  std::vector<bool> frozen_;
};

}  // namespace

absl::StatusOr<bool> RunIndependentLoops(hlo::Module& module) {
  module.RemoveUnreachable();
  const CallCounts calls = CountCalls(module);
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {
    for (const Loop& loop : LoopsOf(*computation, calls)) {
      if (!Independence(loop).Run()) continue;
      loop.condition->RemoveDead();
      changed = true;
    }
  }
  return changed;
}

}  // namespace gangway::passes
