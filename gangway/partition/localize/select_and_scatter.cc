// select-and-scatter (the gradient of a pooling by maximum or minimum) along split dimensions: a shard of the result
// takes every window that touches it, that is the windows' sources and a halo of the array they choose from.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"
#include "gangway/partition/window.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// A value that the selection takes only when there is no other; nullopt when it is no comparison of its parameters.
std::optional<Reduction> SelectionOf(const hlo::Computation& select) {
  const Instruction* root = select.root();
  if (root->opcode() != Opcode::kCompare || root->operand(0)->opcode() != Opcode::kParameter ||
      root->operand(1)->opcode() != Opcode::kParameter) {
    return std::nullopt;
  }
  if (root->operand(0) != select.parameter(0) || root->operand(1) != select.parameter(1)) return std::nullopt;
  switch (root->attr<hlo::CompareAttr>().direction) {
    case hlo::ComparisonDirection::kGe:
    case hlo::ComparisonDirection::kGt:
      return Reduction::kMax;
    case hlo::ComparisonDirection::kLe:
    case hlo::ComparisonDirection::kLt:
      return Reduction::kMin;
    default:
      return std::nullopt;
  }
}

// One split dimension.
struct Pooling {
  int64_t dim = 0;
  AxisList axes;
  WindowPlan sources;          // the windows that touch a shard
  WindowPlan array;            // what these windows choose from, and what lies between
  int64_t span = 0;            // of it that a shard's windows cover
  std::vector<int64_t> holes;  // per shard: before the first window
};

Pooling PlanPooling(int64_t dim, AxisList axes, const hlo::WindowDim& window, int64_t extent, int64_t sources) {
  Pooling plan;
  plan.dim = dim;
  plan.axes = std::move(axes);
  const int64_t shards = ProductOf(plan.axes), tile = ShardExtent(extent, shards);
  // Source j is at position j * stride; it touches element e of the array when e + pad - (size - 1) <= position <= e +
  // pad.
  const WindowRequest touching{sources, extent,      shards,       window.pad_low - window.size + 1,
                               1,       window.size, window.stride};
  int64_t most = 0;
  for (int64_t k = 0; k < shards; ++k) {
    plan.holes.push_back(touching.Holes(k));
    most = std::max(most, plan.holes.back());
  }
  plan.span = (touching.Length() - 1) * window.stride + window.size;
  plan.sources = PlanWindow(touching);
  WindowRequest chosen{extent, extent, shards, 1 - window.size, 1, most + plan.span - (tile - 1), 1};
  // Of a shard that is partly padding other windows are the last ones.
  if (extent % shards != 0) chosen.reach += window.stride - 1;
  plan.array = PlanWindow(chosen);
  return plan;
}

class PoolingGradient {
 public:
  PoolingGradient(const Instruction& instruction, Context& context)
      : instruction_(instruction),
        window_(instruction.attr<hlo::WindowAttr>().window),
        context_(context),
        builder_(context.builder()) {}

  // False when no dimension with a window is split, or the computations are not known.
  bool Plan() {
    selection_ = SelectionOf(*instruction_.called()[0]);
    reduction_ = rules::ReductionOf(*instruction_.called()[1]);
    if (!selection_ || !reduction_) return false;
    const Sharding& held = context_.Value(*instruction_.operand(0)).sharding;
    const Sharding wanted = context_.Wanted(instruction_);
    if (!SameMesh(wanted.mesh, context_.mesh()) || !SameMesh(held.mesh, context_.mesh())) return false;
    for (size_t i = 0; i < window_.size(); ++i) {
      const int64_t d = static_cast<int64_t>(i);
      if (window_[i] == hlo::WindowDim{}) continue;
      if (window_[i].window_dilation != 1 || window_[i].base_dilation != 1) return false;
      AxisList axes = wanted.dims[d].axes;
      if (axes.empty()) axes = held.dims[d].axes;
      if (std::any_of(axes.begin(), axes.end(), [&](const AxisRef& ref) { return Overlaps(taken_, ref); })) continue;
      if (axes.empty()) continue;
      // Before the array there would be elements, of which an integer has none that is selected after all others.
      if (window_[i].pad_low > 0 && !IsFloat(Array().dtype())) continue;
      taken_.insert(taken_.end(), axes.begin(), axes.end());
      poolings_.push_back(PlanPooling(d, std::move(axes), window_[i], Array().dim(d), Sources().dim(d)));
    }
    return !poolings_.empty();
  }

  absl::StatusOr<bool> IsWorthIt(const rules::OpRule& rule) {
    OpPlanOptions options = OptionsFor(instruction_);
    GW_ASSIGN_OR_RETURN(const OpPlan by_rule, PlanOp(instruction_, rule, options, context_));
    options.without = taken_;
    GW_ASSIGN_OR_RETURN(plan_, PlanOp(instruction_, rule, options, context_));
    double cost = plan_.work / static_cast<double>(ProductOf(taken_));
    for (const Pooling& pooling : poolings_) {
      plan_.operands[0].dims[pooling.dim].axes = pooling.axes;
      plan_.operands[1].dims[pooling.dim].axes = pooling.axes;
      plan_.results[0].dims[pooling.dim].axes = pooling.axes;
    }
    for (const Pooling& pooling : poolings_) {
      cost += WindowCost(pooling.array, Array(), plan_.operands[0], pooling.dim);
      cost += WindowCost(pooling.sources, Sources(), plan_.operands[1], pooling.dim);
    }
    for (int64_t i = 0; i < 2; ++i) {
      cost += context_.ReshardCost(context_.Value(*instruction_.operand(i)), plan_.operands[i]);
    }
    return cost + ResultCost(instruction_, 0, plan_.results[0], context_) < by_rule.cost;
  }

  absl::Status Emit(const rules::OpRule& rule) {
    GW_ASSIGN_OR_RETURN(std::vector<Instruction*> operands, PreparedOperands(instruction_, rule, plan_, context_));
    Instruction* never = builder_.Constant(ReductionIdentity(*selection_, Array().dtype()));
    Instruction* neutral = builder_.Constant(ReductionIdentity(*reduction_, Array().dtype()));
    hlo::Window window = window_;
    for (const Pooling& pooling : poolings_) {
      operands[0] = EmitWindow(pooling.array, operands[0], pooling.dim, plan_.operands[0], never, context_);
      operands[0] = SliceAtShard(operands[0], pooling.dim, pooling.axes, pooling.holes, pooling.span);
      operands[1] = EmitWindow(pooling.sources, operands[1], pooling.dim, plan_.operands[1], neutral, context_);
      window[pooling.dim].pad_low = window[pooling.dim].pad_high = 0;
    }
    const Shape covered = WithoutLayout(operands[0]->shape());
    Instruction* init = operands[2];
    Instruction* local = context_.Clone(instruction_, covered, std::move(operands));
    local->mutable_attr<hlo::WindowAttr>().window = std::move(window);
    for (const Pooling& pooling : poolings_) local = OwnPart(local, pooling, init);
    context_.Set(instruction_, local, plan_.results[0]);
    return absl::OkStatus();
  }

 private:
  const Shape& Array() const { return instruction_.operand(0)->shape(); }
  const Shape& Sources() const { return instruction_.operand(1)->shape(); }

  // The shard itself out of what its windows cover.
  Instruction* OwnPart(Instruction* x, const Pooling& pooling, Instruction* init) {
    const int64_t tile = ShardExtent(Array().dim(pooling.dim), ProductOf(pooling.axes));
    std::vector<int64_t> starts;
    for (int64_t holes : pooling.holes) starts.push_back(window_[pooling.dim].size - 1 - holes);
    const auto [least, most] = std::minmax_element(starts.begin(), starts.end());
    std::vector<hlo::PadDim> pad(x->shape().rank());
    pad[pooling.dim].low = std::max<int64_t>(0, -*least);
    pad[pooling.dim].high = std::max<int64_t>(0, *most + tile - x->shape().dim(pooling.dim));
    for (int64_t& start : starts) start += pad[pooling.dim].low;
    if (pad[pooling.dim] != hlo::PadDim{}) x = builder_.Pad(x, init, std::move(pad));
    return SliceAtShard(x, pooling.dim, pooling.axes, starts, tile);
  }

  Instruction* SliceAtShard(Instruction* x, int64_t dim, const AxisList& axes, const std::vector<int64_t>& starts,
                            int64_t size) {
    if (size == x->shape().dim(dim)) return x;
    std::vector<Instruction*> indices(x->shape().rank(), builder_.Index(0));
    indices[dim] = context_.coordinates().PerShard(context_.mesh(), axes, starts);
    DimVector sizes = x->shape().dims();
    sizes[dim] = size;
    return builder_.DynamicSlice(x, std::move(indices), std::move(sizes));
  }

  const Instruction& instruction_;
  const hlo::Window& window_;
  Context& context_;
  hlo::Builder& builder_;
  std::optional<Reduction> selection_, reduction_;
  AxisList taken_;
  std::vector<Pooling> poolings_;
  OpPlan plan_;
};

}  // namespace

absl::Status LocalizeSelectAndScatter(const Instruction& instruction, Context& context) {
  PoolingGradient gradient(instruction, context);
  if (!gradient.Plan()) return LocalizeByRule(instruction, context);
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const bool chosen, gradient.IsWorthIt(rule));
  return chosen ? gradient.Emit(rule) : LocalizeByChoice(instruction, context);
}

}  // namespace gangway::partition
