// What a loop adds up over devices in every step is added up on each device alone, and over devices once, after the
// loop.
//
//   loop: s = s + all-reduce(x)   becomes   loop: p = p + x;   after it: s + all-reduce(p),  p from zeros
//
// Sound because sums may be reordered: nothing in the loop reads s but the sum itself, and what happens to a reduced
// value on its way into the sum is linear with coefficients that are the same on all devices. What a loop inside
// another stacks up on zeros, step by step, is reduced after the inner one: the outer one may add the stacks up.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gangway/hlo/builder.h"
#include "gangway/hlo/splat.h"
#include "gangway/passes/loop.h"
#include "gangway/passes/loop_memory.h"
#include "gangway/passes/passes.h"
#include "gangway/passes/uniform.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool UsedOnce(const Instruction* i) { return i->users().size() == 1 && !i->IsRoot() && !i->has_sharding(); }

bool IsSum(const Instruction* i) {
  if ((i->opcode() != Opcode::kAllReduce && i->opcode() != Opcode::kReduceScatter) || !i->shape().IsArray()) {
    return false;
  }
  const Computation& combiner = *i->called()[0];
  return i->control_predecessors().empty() && combiner.size() == 3 && combiner.root()->opcode() == Opcode::kAdd;
}

// One summand that was reduced over devices, and the operations between the reduction and the sum, first to last.
struct Summand {
  Instruction* leaf;       // as the sum takes it
  Instruction* reduction;  // all-reduce or reduce-scatter
  std::vector<Instruction*> way;
};

class Accumulators {
 public:
  // `budget`: bytes by which the state may still grow, for a reduce-scatter adds up what is larger than its result.
  // `is_inner`: the loop runs in the body of another one.
  Accumulators(const Loop& loop, const UniformValues& uniform, bool is_inner, int64_t* budget)
      : loop_(loop), uniform_(uniform), is_inner_(is_inner), budget_(budget) {}

  bool Run() {
    bool changed = false;
    const int64_t size = loop_.size;
    for (int64_t index = 0; index < size; ++index) {
      changed |= AddChosen(index);
      changed |= is_inner_ && DelayStack(index);
      for (const std::vector<Summand>& summands : ByDevices(ReducedSummands(index))) {
        if (!IsWorthwhile(summands)) continue;
        Delay(index, summands);
        changed = true;
      }
    }
    return changed;
  }

 private:
  // p ? s + x : s is s + (p ? x : 0).
  bool AddChosen(int64_t index) {
    Instruction* next = loop_.body_root()->operand(index);
    if (next->opcode() != Opcode::kSelect || !UsedOnce(next)) return false;
    for (int64_t side : {1, 2}) {
      Instruction *sum = next->operand(side), *old = next->operand(3 - side);
      if (old->opcode() != Opcode::kGetTupleElement || old->operand(0) != loop_.body_state() ||
          ElementIndex(old) != index || sum->opcode() != Opcode::kAdd || !UsedOnce(sum)) {
        continue;
      }
      if (sum->operand(0) != old && sum->operand(1) != old) continue;
      Instruction* term = sum->operand(0) == old ? sum->operand(1) : sum->operand(0);
      if (!AsReduced(term)) continue;
      hlo::Builder builder(loop_.body);
      builder.set_metadata(sum->metadata());
      Instruction* zero = builder.Splat(WithoutLayout(term->shape()), 0);
      std::vector<Instruction*> choice = {next->operand(0), term, zero};
      if (side == 2) std::swap(choice[1], choice[2]);
      SetNext(loop_, index, builder.Binary(Opcode::kAdd, old, builder.Select(choice[0], choice[1], choice[2])));
      loop_.body->Remove(next);
      loop_.body->Remove(sum);
      return true;
    }
    return false;
  }

  // s = dynamic-update-slice(s, all-reduce(x), i) from zeros: s of x, reduced after the loop.
  bool DelayStack(int64_t index) {
    const Instruction *old = OnlyRead(index), *initial = loop_.Initial(index);
    Instruction* next = loop_.body_root()->operand(index);
    if (old == nullptr || initial == nullptr || !hlo::IsSplat(initial, 0) || loop_.IsTakenWhole()) return false;
    if (next->opcode() != Opcode::kDynamicUpdateSlice || next->operand(0) != old || !UsedOnce(next)) return false;
    for (int64_t i = 2; i < next->operand_count(); ++i) {
      if (!uniform_.Contains(next->operand(i))) return false;
    }
    const std::optional<Summand> summand = AsReduced(next->operand(1));
    if (!summand || summand->reduction->opcode() != Opcode::kAllReduce || !IsWorthwhile({*summand})) return false;
    next->ReplaceOperand(1, GoFrom(summand->reduction->operand(0), *summand));
    ReduceOutside(*summand, ElementsOf(loop_.loop, index), loop_.loop->shape().tuple()[index]);
    return true;
  }

  // The summand's reduction of each value instead of the value.
  void ReduceOutside(const Summand& summand, const std::vector<Instruction*>& values, const Shape& shape) {
    Computation* outside = loop_.loop->parent();
    Computation* add = hlo::Builder(outside).ScalarComputation(Opcode::kAdd, shape.dtype());
    for (Instruction* value : values) {
      const std::vector<Instruction*> readers = value->users();
      Instruction* reduced = outside->AddClone(*summand.reduction, WithoutLayout(shape), {value});
      reduced->set_called({add});
      for (Instruction* reader : readers) {
        for (int64_t i = 0; i < reader->operand_count(); ++i) {
          if (reader->operand(i) == value) reader->ReplaceOperand(i, reduced);
        }
      }
      if (value->IsRoot()) outside->set_root(reduced);
    }
  }

  // The body's reads of the element, if the sum is all they serve.
  Instruction* OnlyRead(int64_t index) const {
    Instruction* only = nullptr;
    for (Instruction* element : ElementsOf(loop_.body_state(), index)) {
      if (element->users().empty()) continue;
      if (only != nullptr || !UsedOnce(element)) return nullptr;
      only = element;
    }
    for (Instruction* element : ElementsOf(loop_.condition_state(), index)) {
      if (!element->users().empty() || element->IsRoot()) return nullptr;
    }
    return only;
  }

  // The summands of the element's next value that were reduced over devices; none unless its old value is one summand.
  std::vector<Summand> ReducedSummands(int64_t index) {
    std::vector<Summand> found;
    const Instruction* old = OnlyRead(index);
    Instruction* next = loop_.body_root()->operand(index);
    if (old == nullptr || next->opcode() != Opcode::kAdd || !UsedOnce(next)) return found;
    bool accumulates = false;
    std::vector<Instruction*> sums = {next};
    while (!sums.empty()) {
      Instruction* sum = sums.back();
      sums.pop_back();
      if (sum->operand(0) == sum->operand(1)) return {};
      for (Instruction* term : sum->operands()) {
        if (term == old) {
          accumulates = true;
        } else if (term->opcode() == Opcode::kAdd && UsedOnce(term)) {
          sums.push_back(term);
        } else if (std::optional<Summand> summand = AsReduced(term)) {
          found.push_back(*std::move(summand));
        }
      }
    }
    return accumulates ? found : std::vector<Summand>{};
  }

  std::optional<Summand> AsReduced(Instruction* leaf) {
    Summand summand{leaf, leaf, {}};
    while (UsedOnce(summand.reduction) && !IsSum(summand.reduction)) {
      const std::optional<int64_t> along = LinearIn(*summand.reduction);
      if (!along) return std::nullopt;
      summand.way.insert(summand.way.begin(), summand.reduction);
      summand.reduction = summand.reduction->operand(*along);
    }
    if (!UsedOnce(summand.reduction)) return std::nullopt;
    // The result of a reduce-scatter is another part on each device, so that what follows stays behind it; it must be
    // the same in every step.
    const bool same_in_steps = std::all_of(summand.way.begin(), summand.way.end(),
                                           [](const Instruction* step) { return step->operand_count() == 1; });
    if (summand.reduction->opcode() == Opcode::kReduceScatter && !same_in_steps) return std::nullopt;
    return summand;
  }

  // Those that one reduction after the loop can serve.
  static std::vector<std::vector<Summand>> ByDevices(std::vector<Summand> summands) {
    std::vector<std::vector<Summand>> groups;
    for (Summand& summand : summands) {
      auto like = std::find_if(groups.begin(), groups.end(),
                               [&](const std::vector<Summand>& group) { return SameDevices(group.front(), summand); });
      if (like == groups.end()) like = groups.insert(like, std::vector<Summand>());
      like->push_back(std::move(summand));
    }
    return groups;
  }

  static bool SameDevices(const Summand& a, const Summand& b) {
    hlo::CollectiveAttr x = a.reduction->attr<hlo::CollectiveAttr>(), y = b.reduction->attr<hlo::CollectiveAttr>();
    if (a.reduction->opcode() != b.reduction->opcode() || x.channel_id.has_value() != y.channel_id.has_value()) {
      return false;
    }
    x.channel_id = y.channel_id;
    if (x != y || a.reduction->opcode() == Opcode::kAllReduce) return x == y;
    return a.way.empty() && b.way.empty() &&
           Shape::Compatible(a.reduction->operand(0)->shape(), b.reduction->operand(0)->shape());
  }

  bool IsWorthwhile(const std::vector<Summand>& summands) {
    int64_t in_each_step = 0;
    for (const Summand& summand : summands) in_each_step += summand.reduction->operand(0)->shape().ByteSize();
    if (summands.front().reduction->opcode() == Opcode::kReduceScatter) {
      const int64_t grows = summands.front().reduction->operand(0)->shape().ByteSize();
      if (grows > *budget_) return false;
      *budget_ -= grows;
      return true;
    }
    // Otherwise much would be reduced that is zero or repeated.
    return summands.front().leaf->shape().ByteSize() <= 2 * in_each_step;
  }

  // The operand in which the operation is linear, its other operands being the same on all devices.
  std::optional<int64_t> LinearIn(const Instruction& i) const {
    switch (i.opcode()) {
      case Opcode::kReshape:
      case Opcode::kTranspose:
      case Opcode::kCopy:
      case Opcode::kNegate:
      case Opcode::kSlice:
      case Opcode::kReverse:
      case Opcode::kBroadcast:
        return 0;
      case Opcode::kConvert:
        // To more precision only: sums must not be rounded more often than they were.
        if (!IsFloat(i.shape().dtype()) || !IsFloat(i.operand(0)->shape().dtype()) ||
            ByteWidth(i.shape().dtype()) < ByteWidth(i.operand(0)->shape().dtype())) {
          return std::nullopt;
        }
        return 0;
      case Opcode::kPad:
        if (!hlo::IsSplat(i.operand(1), 0)) return std::nullopt;
        return 0;
      case Opcode::kMultiply:
        if (uniform_.Contains(i.operand(1))) return 0;
        if (uniform_.Contains(i.operand(0))) return 1;
        return std::nullopt;
      case Opcode::kDivide:
        // Shares of a sum may be infinities of either sign where the sum is none: no shares over zero.
        if (IsFloat(i.shape().dtype()) && uniform_.Contains(i.operand(1)) && hlo::IsNeverZero(i.operand(1))) return 0;
        return std::nullopt;
      case Opcode::kSelect:
        if (!uniform_.Contains(i.operand(0))) return std::nullopt;
        if (hlo::IsSplat(i.operand(2), 0)) return 1;
        if (hlo::IsSplat(i.operand(1), 0)) return 2;
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  // The way from the reduction to the sum, gone from another value, in the value's computation.
  static Instruction* GoFrom(Instruction* value, const Summand& summand) {
    const Instruction* from = summand.reduction;
    for (const Instruction* step : summand.way) {
      std::vector<Instruction*> operands = step->operands();
      std::replace(operands.begin(), operands.end(), const_cast<Instruction*>(from), value);
      value = value->parent()->AddClone(*step, step->shape(), std::move(operands));
      from = step;
    }
    return value;
  }

  static void DropSummand(Instruction* leaf) {
    Instruction* sum = leaf->users().front();
    sum->ReplaceAllUsesWith(sum->operand(0) == leaf ? sum->operand(1) : sum->operand(0));
    sum->parent()->Remove(sum);
  }

  void Delay(int64_t index, const std::vector<Summand>& summands) {
    const Summand& first = summands.front();
    const bool scatters = first.reduction->opcode() == Opcode::kReduceScatter;
    hlo::Builder inside(loop_.body), outside(loop_.loop->parent());
    outside.set_metadata(first.reduction->metadata());
    Instruction* value = nullptr;
    for (const Summand& summand : summands) {
      inside.set_metadata(summand.leaf->users().front()->metadata());
      Instruction* unreduced = summand.reduction->operand(0);
      if (!scatters) unreduced = GoFrom(unreduced, summand);
      value = value == nullptr ? unreduced : inside.Binary(Opcode::kAdd, value, unreduced);
    }
    const int64_t added = AddElements(&loop_, {outside.Splat(WithoutLayout(value->shape()), 0)});
    SetNext(loop_, added, inside.Binary(Opcode::kAdd, ElementsOf(loop_.body_state(), added).front(), value));

    const std::vector<Instruction*> readers = ElementsOf(loop_.loop, index);
    const Shape& shape = scatters ? first.reduction->shape() : first.leaf->shape();
    Instruction* reduced = loop_.loop->parent()->AddClone(*first.reduction, WithoutLayout(shape),
                                                          {outside.GetTupleElement(loop_.loop, added)});
    reduced->set_called({outside.ScalarComputation(Opcode::kAdd, shape.dtype())});
    if (scatters) reduced = GoFrom(reduced, first);
    Instruction* total = outside.Binary(Opcode::kAdd, outside.GetTupleElement(loop_.loop, index), reduced);
    for (Instruction* reader : readers) reader->ReplaceAllUsesWith(total);
    for (const Summand& summand : summands) DropSummand(summand.leaf);
  }

  Loop loop_;
  const UniformValues& uniform_;
  const bool is_inner_;
  int64_t* budget_;
};

absl::flat_hash_set<const Computation*> LoopBodies(const hlo::Module& module) {
  absl::flat_hash_set<const Computation*> bodies;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->opcode() == Opcode::kWhile) bodies.insert(instruction->called()[1]);
    }
  }
  return bodies;
}

}  // namespace

absl::StatusOr<bool> RunReduceAfterLoop(hlo::Module& module) {
  module.RemoveUnreachable();
  const CallCounts calls = CountCalls(module);
  int64_t budget = kMaxGrownBytes;
  const absl::flat_hash_set<const Computation*> bodies = LoopBodies(module);
  std::optional<UniformValues> uniform;  // where the first loop is met
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {  // inner loops first
    bool changed_here = false;
    for (const Loop& loop : LoopsOf(*computation, calls)) {
      if (!uniform) uniform.emplace(module);
      if (!Accumulators(loop, *uniform, bodies.contains(computation), &budget).Run()) continue;
      loop.body->RemoveDead();
      loop.body->SortTopologically();
      changed_here = true;
    }
    if (!changed_here) continue;
    computation->RemoveDead();
    computation->SortTopologically();
    changed = true;
  }
  if (changed) module.SortComputations();
  return changed;
}

}  // namespace gangway::passes
