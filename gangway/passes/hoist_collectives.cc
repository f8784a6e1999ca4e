// A collective or a product whose operands are the same in every step of a loop is done once, before it.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gangway/hlo/builder.h"
#include "gangway/passes/loop.h"
#include "gangway/passes/loop_memory.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsProduct(const Instruction& i) { return i.opcode() == Opcode::kDot || i.opcode() == Opcode::kConvolution; }

// A product that is larger than what it is made of is rather made in every step.
bool IsSmallProduct(const Instruction& i) {
  return IsProduct(i) && i.shape().ByteSize() <= i.operand(0)->shape().ByteSize() + i.operand(1)->shape().ByteSize();
}

bool IsHoisted(const Instruction& i) {
  if (IsSmallProduct(i)) return true;
  switch (i.opcode()) {
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter:
    case Opcode::kAllToAll:
    case Opcode::kCollectivePermute:
      return i.shape().IsArray() && i.operand_count() == 1;
    default:
      return false;
  }
}

// May be done before the loop although the loop may not run at all, and is no reason on its own.
bool IsPure(const Instruction& i) {
  if (i.HasSideEffect() || !i.control_predecessors().empty() || i.has_sharding()) return false;
  switch (i.opcode()) {
    case Opcode::kParameter:
    case Opcode::kOptBarrier:
    case Opcode::kRng:
    case Opcode::kRngGetAndUpdateState:
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kCustomCall:
    case Opcode::kFusion:
    case Opcode::kTuple:
      return false;
    default:
      return true;
  }
}

class Hoister {
 public:
  Hoister(Loop loop, int64_t* budget) : loop_(loop), budget_(budget) {}

  bool Run() {
    FindInvariants();
    std::vector<Instruction*> chosen;
    for (Instruction* collective : collectives_) {
      const int64_t held = IsProduct(*collective) ? 0 : collective->operand(0)->shape().ByteSize();
      const int64_t growth = std::max<int64_t>(0, collective->shape().ByteSize() - held);
      if (growth > *budget_) continue;
      *budget_ -= growth;
      chosen.push_back(collective);
    }
    if (chosen.empty()) return false;
    std::vector<Instruction*> outside;
    for (Instruction* collective : chosen) outside.push_back(Before(collective));
    const int64_t first = AddElements(&loop_, outside);
    for (size_t i = 0; i < chosen.size(); ++i) {
      Instruction* read = ElementsOf(loop_.body_state(), first + static_cast<int64_t>(i)).front();
      chosen[i]->ReplaceAllUsesWith(read);
    }
    loop_.body->RemoveDead();
    loop_.body->SortTopologically();
    return true;
  }

 private:
  // Marks what is the same in every step. Collectives and products that something in the loop itself reads are what is
  // worth hoisting; those that only lead to other invariant ones go along with them.
  void FindInvariants() {
    for (const auto& owned : loop_.body->instructions()) {
      Instruction* i = owned.get();
      if (IsInvariant(*i)) {
        invariant_.insert(i);
        if (IsHoisted(*i)) reached_.insert(i);
      }
    }
    for (const auto& owned : loop_.body->instructions()) {
      Instruction* i = owned.get();
      if (!reached_.contains(i)) continue;
      const bool read_in_steps = std::any_of(i->users().begin(), i->users().end(), [&](const Instruction* user) {
        return !invariant_.contains(user) || !LeadsToCollective(user);
      });
      if (read_in_steps) collectives_.push_back(i);
    }
  }

  bool IsInvariant(const Instruction& i) const {
    if (i.opcode() == Opcode::kGetTupleElement && i.operand(0) == loop_.body_state()) {
      return loop_.PassesThrough(ElementIndex(&i)) && i.shape().IsArray();
    }
    return IsPure(i) && std::all_of(i.operands().begin(), i.operands().end(),
                                    [&](const Instruction* operand) { return invariant_.contains(operand); });
  }

  // An invariant all of whose uses end in hoisted collectives.
  bool LeadsToCollective(const Instruction* i) const {
    while (!reached_.contains(i)) {
      if (i->users().size() != 1 || !invariant_.contains(i->users().front())) return false;
      i = i->users().front();
    }
    return true;
  }

  // The invariant made before the loop, with all it is made of.
  Instruction* Before(Instruction* wanted) {
    std::vector<Instruction*> stack = {wanted};
    while (!stack.empty()) {
      Instruction* top = stack.back();
      if (before_.contains(top)) {
        stack.pop_back();
        continue;
      }
      if (top->opcode() == Opcode::kGetTupleElement && top->operand(0) == loop_.body_state()) {
        before_[top] = loop_.InitialOrRead(ElementIndex(top));
        continue;
      }
      bool ready = true;
      for (Instruction* operand : top->operands()) {
        if (before_.contains(operand)) continue;
        stack.push_back(operand);
        ready = false;
      }
      if (!ready) continue;
      std::vector<Instruction*> operands;
      for (Instruction* operand : top->operands()) operands.push_back(before_.at(operand));
      before_[top] = loop_.loop->parent()->AddClone(*top, top->shape(), std::move(operands));
    }
    return before_.at(wanted);
  }

  Loop loop_;
  int64_t* budget_;
  absl::flat_hash_set<const Instruction*> invariant_, reached_;
  std::vector<Instruction*> collectives_;
  absl::flat_hash_map<const Instruction*, Instruction*> before_;
};

}  // namespace

absl::StatusOr<bool> RunHoistCollectives(hlo::Module& module) {
  module.RemoveUnreachable();
  const CallCounts calls = CountCalls(module);
  int64_t budget = kMaxGrownBytes;
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {  // inner loops first: what leaves them may leave the next
    bool changed_here = false;
    for (const Loop& loop : LoopsOf(*computation, calls)) changed_here |= Hoister(loop, &budget).Run();
    if (!changed_here) continue;
    computation->RemoveDead();
    computation->SortTopologically();
    changed = true;
  }
  return changed;
}

}  // namespace gangway::passes
