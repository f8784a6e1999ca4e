// slice, pad and reverse along split dimensions: every shard receives the stretches it needs (arrangement.h). Slices,
// pads and reversals underneath are looked through. Strides and interior padding are windows.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/emit_arrangement.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/part.h"
#include "gangway/partition/localize/table.h"
#include "gangway/partition/stretches.h"
#include "gangway/partition/window_choice.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

// A box of an array, its dimensions arranged one after the other.
class BoxPlan {
 public:
  BoxPlan(const ArrangedBox& box, const Instruction& instruction, Context& context)
      : box_(box), instruction_(instruction), context_(context), base_(context.Value(*box.base)) {}

  // Chooses shardings; false when dimensions are arranged but none of these is split.
  absl::StatusOr<bool> Choose(const rules::OpRule& rule) {
    const Sharding wanted = context_.Wanted(instruction_);
    if (!SameMesh(wanted.mesh, context_.mesh()) || !SameMesh(base_.sharding.mesh, context_.mesh())) return false;
    const int64_t rank = base_.global.rank();
    axes_.resize(rank);
    AxisList taken;
    bool is_arranged = false;
    for (int64_t d = 0; d < rank; ++d) {
      is_arranged |= box_.IsArranged(d);
      // What a slice cuts off again that a pad had added passes through.
      const rules::DimFactors& factors = rule.results[0][d];
      if (factors.empty() || rule.factors[factors[0]].kind != rules::FactorKind::kPermutation) continue;
      AxisList axes = wanted.dims[d].axes;
      if (axes.empty()) axes = base_.sharding.dims[d].axes;
      if (ProductOf(axes) > std::max<int64_t>(1, instruction_.shape().dim(d))) continue;
      if (std::any_of(axes.begin(), axes.end(), [&](const AxisRef& ref) { return Overlaps(taken, ref); })) continue;
      taken.insert(taken.end(), axes.begin(), axes.end());
      axes_[d] = std::move(axes);
    }
    if (is_arranged && taken.empty()) return false;
    OpPlanOptions options = OptionsFor(instruction_);
    options.without = taken;
    options.partial_ok.clear();
    GW_ASSIGN_OR_RETURN(const OpPlan others, PlanOp(instruction_, rule, options, context_));
    held_ = result_ = others.results[0];
    cost_ = others.work / static_cast<double>(ProductOf(taken));
    for (int64_t d = 0; d < rank; ++d) {
      // The last operation may leave a dimension as it is that one underneath arranges.
      if (box_.IsArranged(d) && axes_[d].empty()) axes_[d] = result_.dims[d].axes;
      if (!axes_[d].empty()) result_.dims[d].axes = held_.dims[d].axes = axes_[d];
      if (box_.IsArranged(d) && !base_.sharding.IsSplit(d)) held_.dims[d].axes.clear();
    }
    Shape shape = ShardShape(base_.global, held_);
    ChooseOrder(shape);
    for (int64_t d : order_) {
      const ArrangementPlan plan = PlanDim(d);
      cost_ += ArrangementCost(plan, static_cast<double>(shape.ByteSize()) / static_cast<double>(shape.dim(d)));
      shape.set_dim(d, plan.Tile());
    }
    cost_ += context_.ReshardCost(base_, held_) + ResultCost(instruction_, 0, result_, context_);
    return true;
  }

  double cost() const { return cost_; }

  absl::Status Emit() {
    GW_ASSIGN_OR_RETURN(Instruction * local, context_.Reshard(base_, held_));
    Instruction* fill = nullptr;
    if (box_.fill != nullptr) {
      GW_ASSIGN_OR_RETURN(fill, context_.Replicate(context_.Value(*box_.fill)));
    }
    DimVector mirrored;
    for (int64_t d = 0; d < base_.global.rank(); ++d) {
      if (box_.mirrored[d]) mirrored.push_back(d);
    }
    // All at once: then the moves follow each other, and can become one.
    if (!mirrored.empty())
      local = context_.builder().Add(hlo::Opcode::kReverse, {local}, hlo::DimensionsAttr{mirrored});
    for (int64_t d : order_) {
      std::vector<Instruction*> sources = {local};
      if (fill != nullptr) sources.push_back(fill);
      local = EmitArrangement(PlanDim(d), d, axes_[d], WithoutLayout(local->shape()), std::move(sources), context_);
    }
    context_.Set(instruction_, local, result_);
    return absl::OkStatus();
  }

 private:
  // What is cut away does not travel: dimensions that lose most of their elements come first.
  void ChooseOrder(const Shape& shard) {
    std::vector<double> left(shard.rank());
    for (int64_t d = 0; d < shard.rank(); ++d) {
      if (!box_.IsArranged(d)) continue;
      order_.push_back(d);
      left[d] = static_cast<double>(PlanDim(d).Tile()) / static_cast<double>(shard.dim(d));
    }
    std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return left[a] < left[b]; });
  }

  ArrangementPlan PlanDim(int64_t d) const {
    const auto kind = held_.IsSplit(d) ? StretchSource::Kind::kSplit : StretchSource::Kind::kWhole;
    std::vector<StretchSource> sources = {{kind, base_.global.dim(d), static_cast<bool>(box_.mirrored[d])}};
    const int64_t extent = instruction_.shape().dim(d);
    if (box_.fill != nullptr) sources.push_back({StretchSource::Kind::kMade, extent, false});
    return PlanArrangement(extent, ProductOf(axes_[d]), box_.dims[d], std::move(sources));
  }

  const ArrangedBox& box_;
  const Instruction& instruction_;
  Context& context_;
  const LocalValue base_;
  std::vector<AxisList> axes_;  // of the result's arranged dimensions
  std::vector<int64_t> order_;  // of the arranged dimensions
  Sharding held_, result_;      // of the base, of the result
  double cost_ = 0;
};

// A slice of which every device contributes what lies in its shard, the rest zeros; the parts add up.
class PartsPlan {
 public:
  PartsPlan(const Instruction& slice, Context& context)
      : slice_(slice), context_(context), value_(context.Value(*slice.operand(0))) {}

  // False when no dimension that is cut is split.
  bool Choose() {
    if (!SameMesh(value_.sharding.mesh, context_.mesh())) return false;
    held_ = value_.sharding;
    held_.unreduced.clear();
    result_ = held_;
    for (int64_t d = 0; d < value_.global.rank(); ++d) {
      if (!held_.IsSplit(d) || slice_.shape().dim(d) == value_.global.dim(d)) continue;
      cut_.push_back(d);
      result_.unreduced.insert(result_.unreduced.end(), held_.dims[d].axes.begin(), held_.dims[d].axes.end());
      result_.dims[d].axes.clear();
    }
    result_.reduction = value_.global.dtype() == DType::kPred ? Reduction::kOr : Reduction::kSum;
    return !cut_.empty();
  }

  double cost() const { return context_.ReshardCost(value_, held_) + ResultCost(slice_, 0, result_, context_); }

  absl::Status Emit() {
    const auto& attr = slice_.attr<hlo::SliceAttr>();
    GW_ASSIGN_OR_RETURN(Instruction * local, context_.Reshard(value_, held_));
    DimVector starts(value_.global.rank(), 0), limits = local->shape().dims();
    for (int64_t d = 0; d < value_.global.rank(); ++d) {
      if (held_.IsSplit(d)) continue;
      starts[d] = attr.starts[d];
      limits[d] = attr.limits[d];
    }
    if (limits != local->shape().dims() || starts != DimVector(starts.size(), 0)) {
      local = context_.builder().Slice(local, starts, limits);
    }
    for (int64_t d : cut_) {
      local = OwnPart(local, held_, value_.global, d, context_.builder().Index(attr.starts[d]), slice_.shape().dim(d),
                      context_);
    }
    context_.Set(slice_, local, result_);
    return absl::OkStatus();
  }

 private:
  const Instruction& slice_;
  Context& context_;
  const LocalValue value_;
  std::vector<int64_t> cut_;
  Sharding held_, result_;
};

bool HasUnitStrides(const Instruction& slice) {
  const DimVector& strides = slice.attr<hlo::SliceAttr>().strides;
  return std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; });
}

// Slices of the operand that cut the same dimensions, this one included: once the operand lies so that these are whole,
// it does for all of them.
double SlicesAlike(const Instruction& slice) {
  const auto cuts_alike = [&](const Instruction* other) {
    if (other->opcode() != hlo::Opcode::kSlice || !HasUnitStrides(*other)) return false;
    for (int64_t d = 0; d < slice.shape().rank(); ++d) {
      const int64_t whole = slice.operand(0)->shape().dim(d);
      if ((slice.shape().dim(d) == whole) != (other->shape().dim(d) == whole)) return false;
    }
    return true;
  };
  const auto& users = slice.operand(0)->users();
  return static_cast<double>(std::count_if(users.begin(), users.end(), cuts_alike));
}

// By arrangement, by parts (slices) or by the rule, whichever costs least.
absl::Status LocalizeBox(const Instruction& instruction, Context& context) {
  const std::optional<ArrangedBox> box = BoxOf(instruction);
  if (!box || instruction.shape().ElementCount() == 0 || box->base->shape().ElementCount() == 0) {
    return LocalizeByRule(instruction, context);
  }
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  BoxPlan arranged(*box, instruction, context);
  GW_ASSIGN_OR_RETURN(const bool can_arrange, arranged.Choose(rule));
  PartsPlan parts(instruction, context);
  const bool has_parts = instruction.opcode() == hlo::Opcode::kSlice && parts.Choose();
  // Costs nothing until somebody needs it.
  if (has_parts && !context.module().options.plain && IsOnlyLookedThrough(instruction)) return parts.Emit();
  if (!can_arrange && !has_parts) return LocalizeByRule(instruction, context);
  GW_ASSIGN_OR_RETURN(const OpPlan by_rule, PlanOp(instruction, rule, OptionsFor(instruction), context));
  double rule_cost = by_rule.cost;
  if (has_parts && !can_arrange && !context.module().options.plain) {
    const double shared = context.ReshardCost(context.Value(*instruction.operand(0)), by_rule.operands[0]);
    rule_cost -= shared * (1 - 1 / SlicesAlike(instruction));
  }
  if (has_parts && parts.cost() < rule_cost && (!can_arrange || parts.cost() < arranged.cost())) return parts.Emit();
  if (can_arrange && arranged.cost() < by_rule.cost) return arranged.Emit();
  return LocalizeByChoice(instruction, context);
}

}  // namespace

absl::Status LocalizeSlice(const Instruction& instruction, Context& context) {
  if (HasUnitStrides(instruction)) return LocalizeBox(instruction, context);
  const auto& attr = instruction.attr<hlo::SliceAttr>();
  const Shape& operand = instruction.operand(0)->shape();
  std::vector<WindowDimension> candidates;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (instruction.shape().dim(d) != operand.dim(d)) {
      candidates.push_back({d, d, -1, attr.starts[d], attr.strides[d], 1, 1});
    }
  }
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const WindowChoice choice, ChooseWindows(instruction, rule, candidates, 1, context));
  if (choice.outcome != WindowChoice::Outcome::kChosen) return LocalizeWithoutWindows(choice, instruction, context);

  GW_ASSIGN_OR_RETURN(Instruction * local,
                      context.Reshard(context.Value(*instruction.operand(0)), choice.plan.operands[0]));
  for (size_t i = 0; i < choice.dims.size(); ++i) {
    local = EmitWindow(choice.windows[i], local, choice.dims[i].operand_dim, choice.plan.operands[0], nullptr, context);
  }
  DimVector starts = attr.starts, limits = attr.limits;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (choice.Along(d) != nullptr) starts[d] = 0;
    if (choice.Along(d) != nullptr || local->shape().dim(d) != operand.dim(d)) limits[d] = local->shape().dim(d);
  }
  context.Set(instruction, context.builder().Slice(local, starts, limits, attr.strides), choice.plan.results[0]);
  return absl::OkStatus();
}

absl::Status LocalizePad(const Instruction& instruction, Context& context) {
  const auto& attr = instruction.attr<hlo::PadAttr>();
  std::vector<WindowDimension> candidates;
  bool has_interior = false;
  for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
    const hlo::PadDim& pad = attr.dims[d];
    has_interior |= pad.interior != 0;
    if (pad != hlo::PadDim{}) candidates.push_back({d, d, -1, -pad.low, 1, 1, pad.interior + 1});
  }
  if (!has_interior) return LocalizeBox(instruction, context);
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const WindowChoice choice, ChooseWindows(instruction, rule, candidates, 1, context));
  if (choice.outcome != WindowChoice::Outcome::kChosen) return LocalizeWithoutWindows(choice, instruction, context);

  GW_ASSIGN_OR_RETURN(Instruction * fill, context.Replicate(context.Value(*instruction.operand(1))));
  GW_ASSIGN_OR_RETURN(Instruction * local,
                      context.Reshard(context.Value(*instruction.operand(0)), choice.plan.operands[0]));
  std::vector<hlo::PadDim> pad = attr.dims;
  for (size_t i = 0; i < choice.dims.size(); ++i) {
    const LocalWindow window = EmitLocalWindow(choice, i, local, fill, context);
    local = window.operand;
    pad[choice.dims[i].operand_dim] = {window.pad_low, window.pad_high, window.base_dilation - 1};
  }
  context.Set(instruction, context.builder().Pad(local, fill, std::move(pad)), choice.plan.results[0]);
  return absl::OkStatus();
}

absl::Status LocalizeReverse(const Instruction& instruction, Context& context) {
  return LocalizeBox(instruction, context);
}

}  // namespace gangway::partition
