// What a loop adds up over devices in every step is added up on each device alone, and over devices once, after the
// loop.
//
//   loop: s = s + all-reduce(x)   becomes   loop: p = p + x;   after it: s + all-reduce(p),  p from zeros
//
// Sound because sums may be reordered: nothing in the loop reads s but the sum itself, and what happens to a reduced
// value on its way into the sum is linear with coefficients that are the same on all devices.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gangway/hlo/builder.h"
#include "gangway/passes/loop.h"
#include "gangway/passes/passes.h"
#include "gangway/passes/uniform.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// A reduce-scatter adds up what is larger than its result. All such sums of one loop together stay below this.
constexpr int64_t kMaxGrownBytes = int64_t{256} << 20;

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
  Accumulators(const Loop& loop, const UniformValues& uniform) : loop_(loop), uniform_(uniform) {}

  bool Run() {
    bool changed = false;
    const int64_t size = loop_.size;
    for (int64_t index = 0; index < size; ++index) {
      for (const std::vector<Summand>& summands : ByDevices(ReducedSummands(index))) {
        if (!IsWorthwhile(summands)) continue;
        Delay(index, summands);
        changed = true;
      }
    }
    return changed;
  }

 private:
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
    // The result of a reduce-scatter is another part on each device: what follows must not depend on which.
    const bool ready =
        UsedOnce(summand.reduction) && (summand.reduction->opcode() == Opcode::kAllReduce || summand.way.empty());
    return ready ? std::optional(std::move(summand)) : std::nullopt;
  }

  // Those that one reduction after the loop can serve.
  static std::vector<std::vector<Summand>> ByDevices(std::vector<Summand> summands) {
    std::vector<std::vector<Summand>> groups;
    for (Summand& summand : summands) {
      auto like = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Summand>& group) {
        return SameDevices(*group.front().reduction, *summand.reduction);
      });
      if (like == groups.end()) like = groups.insert(like, std::vector<Summand>());
      like->push_back(std::move(summand));
    }
    return groups;
  }

  static bool SameDevices(const Instruction& a, const Instruction& b) {
    hlo::CollectiveAttr x = a.attr<hlo::CollectiveAttr>(), y = b.attr<hlo::CollectiveAttr>();
    if (a.opcode() != b.opcode() || x.channel_id.has_value() != y.channel_id.has_value()) return false;
    x.channel_id = y.channel_id;
    return x == y &&
           (a.opcode() == Opcode::kAllReduce || Shape::Compatible(a.operand(0)->shape(), b.operand(0)->shape()));
  }

  bool IsWorthwhile(const std::vector<Summand>& summands) {
    int64_t in_each_step = 0;
    for (const Summand& summand : summands) in_each_step += summand.reduction->operand(0)->shape().ByteSize();
    if (summands.front().reduction->opcode() == Opcode::kReduceScatter) {
      const int64_t grows = summands.front().reduction->operand(0)->shape().ByteSize();
      if (grown_ + grows > kMaxGrownBytes) return false;
      grown_ += grows;
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
        if (!IsZero(i.operand(1))) return std::nullopt;
        return 0;
      case Opcode::kMultiply:
        if (uniform_.Contains(i.operand(1))) return 0;
        if (uniform_.Contains(i.operand(0))) return 1;
        return std::nullopt;
      case Opcode::kDivide:
        if (IsFloat(i.shape().dtype()) && uniform_.Contains(i.operand(1))) return 0;
        return std::nullopt;
      case Opcode::kSelect:
        if (!uniform_.Contains(i.operand(0))) return std::nullopt;
        if (IsZero(i.operand(2))) return 1;
        if (IsZero(i.operand(1))) return 2;
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  static bool IsZero(const Instruction* i) {
    if (i->opcode() == Opcode::kBroadcast) i = i->operand(0);
    const auto* constant = i->attr_if<hlo::ConstantAttr>();
    return constant != nullptr && constant->literal->IsSplat() &&
           ElementAsDouble(i->shape().dtype(), constant->literal->data()) == 0 &&
           ImaginaryAsDouble(i->shape().dtype(), constant->literal->data()) == 0;
  }

  // The summand's unreduced value: what it would be if the reduction did nothing.
  static Instruction* Unreduced(const Summand& summand) {
    Instruction* value = summand.reduction->operand(0);
    for (Instruction* step : summand.way) {
      Instruction* from = summand.reduction;
      if (step != summand.way.front()) from = *(std::find(summand.way.begin(), summand.way.end(), step) - 1);
      std::vector<Instruction*> operands = step->operands();
      for (Instruction*& operand : operands) {
        if (operand == from) operand = value;
      }
      value = step->parent()->AddClone(*step, step->shape(), std::move(operands));
    }
    return value;
  }

  static void DropSummand(Instruction* leaf) {
    Instruction* sum = leaf->users().front();
    sum->ReplaceAllUsesWith(sum->operand(0) == leaf ? sum->operand(1) : sum->operand(0));
    sum->parent()->Remove(sum);
  }

  void Delay(int64_t index, const std::vector<Summand>& summands) {
    const Instruction& reduction = *summands.front().reduction;
    hlo::Builder inside(loop_.body), outside(loop_.loop->parent());
    outside.set_metadata(reduction.metadata());
    Instruction* value = nullptr;
    for (const Summand& summand : summands) {
      inside.set_metadata(summand.leaf->users().front()->metadata());
      Instruction* part = Unreduced(summand);
      value = value == nullptr ? part : inside.Binary(Opcode::kAdd, value, part);
    }
    const int64_t added = AddElements(&loop_, {outside.Splat(WithoutLayout(value->shape()), 0)});
    SetNext(loop_, added, inside.Binary(Opcode::kAdd, ElementsOf(loop_.body_state(), added).front(), value));

    const std::vector<Instruction*> readers = ElementsOf(loop_.loop, index);
    Instruction* partial = outside.GetTupleElement(loop_.loop, added);
    Instruction* reduced =
        loop_.loop->parent()->AddClone(reduction, WithoutLayout(summands.front().leaf->shape()), {partial});
    reduced->set_called({outside.ScalarComputation(Opcode::kAdd, reduced->shape().dtype())});
    Instruction* total = outside.Binary(Opcode::kAdd, outside.GetTupleElement(loop_.loop, index), reduced);
    for (Instruction* reader : readers) reader->ReplaceAllUsesWith(total);
    for (const Summand& summand : summands) DropSummand(summand.leaf);
  }

  Loop loop_;
  const UniformValues& uniform_;
  int64_t grown_ = 0;
};

}  // namespace

absl::StatusOr<bool> RunReduceAfterLoop(hlo::Module& module) {
  module.RemoveUnreachable();
  const CallCounts calls = CountCalls(module);
  std::optional<UniformValues> uniform;  // where the first loop is met
  bool changed = false;
  for (Computation* computation : module.PostOrder()) {  // inner loops first
    bool changed_here = false;
    for (const Loop& loop : LoopsOf(*computation, calls)) {
      if (!uniform) uniform.emplace(module);
      if (!Accumulators(loop, *uniform).Run()) continue;
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
