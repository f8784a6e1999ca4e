// gather and scatter where the indexed dimensions of the operand are split: every device looks up the indices that fall
// into its shard. Batch dimensions, index dimensions and whole window dimensions go by the rule.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/part.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

bool Has(const DimVector& dims, int64_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

// Indices of a dimension in s32. A gather clamps them in the whole array, which a split dimension needs done; a scatter
// drops those outside, which they stay.
Instruction* InS32(Instruction* indices, int64_t extent, bool clamp, bool split, Context& context) {
  const bool is_wider = BitWidth(indices->shape().dtype()) > 32 || indices->shape().dtype() == DType::kU32;
  if (clamp && (split || is_wider)) return Clamped(indices, 0, extent - 1, context);
  if (is_wider) return Clamped(indices, -1, extent, context);
  return indices->shape().dtype() == DType::kS32 ? indices : context.builder().Convert(indices, DType::kS32);
}

// indices (local) with those along `dims` of the operand made relative to the device's shard. `inside` (may be null)
// becomes a predicate of the indices' shape without the index vector: the element lies in the shard.
Instruction* ShiftIndices(Instruction* indices, int64_t index_vector_dim, const DimVector& index_map,
                          const DimVector& dims, const Sharding& operand, const Shape& global, bool clamp,
                          Instruction** inside, Context& context) {
  Builder& builder = context.builder();
  const bool vector = index_vector_dim < indices->shape().rank();
  const Shape whole = WithoutLayout(indices->shape());
  std::vector<Instruction*> columns;
  for (size_t i = 0; i < index_map.size(); ++i) {
    Instruction* column = indices;
    if (vector) {
      DimVector starts(whole.rank(), 0), limits = whole.dims();
      starts[index_vector_dim] = static_cast<int64_t>(i);
      limits[index_vector_dim] = static_cast<int64_t>(i) + 1;
      column = builder.Slice(indices, starts, limits);
    }
    const int64_t d = index_map[i];
    column = InS32(column, global.dim(d), clamp, Has(dims, d), context);
    if (Has(dims, d)) {
      const Shape shape = WithoutLayout(column->shape());
      const auto splat = [&](int64_t v) { return builder.BroadcastScalar(builder.Index(v), shape); };
      const int64_t extent = ShardExtent(global.dim(d), operand.ShardCount(d));
      column = builder.Binary(Opcode::kSubtract, column,
                              builder.BroadcastScalar(context.ShardOffset(operand, global, d), shape));
      Instruction* in = builder.Binary(Opcode::kAnd, builder.Compare(hlo::ComparisonDirection::kGe, column, splat(0)),
                                       builder.Compare(hlo::ComparisonDirection::kLt, column, splat(extent)));
      if (inside != nullptr) *inside = *inside == nullptr ? in : builder.Binary(Opcode::kAnd, *inside, in);
    }
    columns.push_back(column);
  }
  if (inside != nullptr && *inside != nullptr && vector) {
    DimVector dims_without = whole.dims();
    dims_without.erase(dims_without.begin() + index_vector_dim);
    *inside = builder.Reshape(*inside, dims_without);
  }
  return columns.size() == 1 ? columns[0] : builder.Concatenate(columns, index_vector_dim);
}

// Split dimensions of the operand that are indexed one element at a time.
DimVector IndexedSplitDims(const Sharding& sharding, const Shape& global, const DimVector& index_map,
                           const DimVector& window) {
  DimVector dims;
  for (int64_t d = 0; d < global.rank(); ++d) {
    if (sharding.IsSplit(d) && Has(index_map, d) && window[d] == 1 && global.dim(d) > 1) dims.push_back(d);
  }
  return dims;
}

// Of a scatter: extent of the update window along each dimension of the operand.
DimVector UpdateWindow(const hlo::ScatterAttr& attr, const Shape& operand, const Shape& update) {
  DimVector window(operand.rank(), 1);
  size_t next = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (Has(attr.inserted_window_dims, d) || Has(attr.input_batching_dims, d)) continue;
    window[d] = update.dim(attr.update_window_dims[next++]);
  }
  return window;
}

// The plan the rule gives when the axes of the indexed dimensions are taken out of play.
absl::StatusOr<OpPlan> PlanWithout(const Instruction& instruction, const rules::OpRule& rule, const AxisList& taken,
                                   Context& context) {
  OpPlanOptions options = OptionsFor(instruction);
  options.without = taken;
  return PlanOp(instruction, rule, options, context);
}

// XLA's expansion of a scatter reads the element it may replace by a dynamic slice, whose start it relies on being
// clamped; merged with a slice underneath, the clamp is lost and updates outside the shard overwrite its border. The
// barrier keeps the two apart.
Instruction* ShieldedSlice(Instruction* x, Builder& builder) {
  if (x->opcode() != Opcode::kSlice && x->opcode() != Opcode::kDynamicSlice) return x;
  return builder.Unary(Opcode::kOptBarrier, x);
}

AxisList AxesOf(const Sharding& sharding, const DimVector& dims) {
  AxisList axes;
  for (int64_t d : dims) axes.insert(axes.end(), sharding.dims[d].axes.begin(), sharding.dims[d].axes.end());
  return axes;
}

// A scatter of which every device applies the updates that fall into its shard: it sees all of them along the axes that
// split the indexed dimensions.
struct ScatterPlan {
  OpPlan plan;
  DimVector dims;  // indexed and split
};

// How the result may lie: as completion wants it, or as those who read it asked for it in an earlier run.
std::vector<Sharding> ResultsToTry(const Instruction& instruction, Context& context) {
  std::vector<Sharding> results = {context.Wanted(instruction)};
  if (const Demands* before = context.module().options.before) {
    for (Sharding& demand : before->Of({&instruction, 0})) results.push_back(std::move(demand));
  }
  return results;
}

// The cheapest of those that split indexed dimensions; nothing when none does.
absl::StatusOr<std::optional<ScatterPlan>> PlanScatter(const Instruction& instruction, const rules::OpRule& rule,
                                                       Context& context) {
  const auto& attr = instruction.attr<hlo::ScatterAttr>();
  const Shape global = WithoutLayout(instruction.operand(0)->shape());
  const DimVector window = UpdateWindow(attr, global, instruction.operand(2)->shape());
  std::optional<ScatterPlan> best;
  for (const Sharding& result : ResultsToTry(instruction, context)) {
    if (!SameMesh(result.mesh, context.mesh())) continue;
    const DimVector dims = IndexedSplitDims(result, global, attr.scatter_dims_to_operand_dims, window);
    if (dims.empty()) continue;
    const AxisList taken = AxesOf(result, dims);
    GW_ASSIGN_OR_RETURN(OpPlan plan, PlanWithout(instruction, rule, taken, context));
    for (int64_t d : dims) plan.operands[0].dims[d].axes = plan.results[0].dims[d].axes = result.dims[d].axes;
    plan.cost =
        plan.work / static_cast<double>(ProductOf(taken)) + ResultCost(instruction, 0, plan.results[0], context);
    for (int64_t i = 0; i < 3; ++i)
      plan.cost += context.ReshardCost(context.Value(*instruction.operand(i)), plan.operands[i]);
    if (!best || plan.cost < best->plan.cost) best = ScatterPlan{std::move(plan), dims};
  }
  return best;
}

}  // namespace

absl::Status LocalizeGather(const Instruction& instruction, Context& context) {
  const auto& attr = instruction.attr<hlo::GatherAttr>();
  const LocalValue& value = context.Value(*instruction.operand(0));
  const Shape global = value.global;
  const DimVector dims = SameMesh(value.sharding.mesh, context.mesh())
                             ? IndexedSplitDims(value.sharding, global, attr.start_index_map, attr.slice_sizes)
                             : DimVector{};
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  if (dims.empty() || rule.form != rules::RuleForm::kFactors) return LocalizeByRule(instruction, context);

  const AxisList taken = AxesOf(value.sharding, dims);
  GW_ASSIGN_OR_RETURN(OpPlan plan, PlanWithout(instruction, rule, taken, context));
  Sharding operand = plan.operands[0];
  operand.unreduced.clear();
  for (int64_t d : dims) operand.dims[d].axes = value.sharding.dims[d].axes;
  Sharding result = plan.results[0];
  result.unreduced.insert(result.unreduced.end(), taken.begin(), taken.end());
  result.reduction = global.dtype() == DType::kPred ? Reduction::kOr : Reduction::kSum;
  Sharding wanted = context.Wanted(instruction);
  wanted.manual = result.manual;
  const Shape shape = WithoutLayout(instruction.shape());
  const double by_parts = context.ReshardCost(value, operand) + context.module().planner->Cost(result, wanted, shape) +
                          context.ReshardCost(context.Value(*instruction.operand(1)), plan.operands[1]);
  GW_ASSIGN_OR_RETURN(const OpPlan by_rule, PlanOp(instruction, rule, OptionsFor(instruction), context));
  if (by_rule.cost <= by_parts) return LocalizeByChoice(instruction, context);

  Builder& builder = context.builder();
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, operand));
  GW_ASSIGN_OR_RETURN(Instruction * indices, context.Reshard(context.Value(*instruction.operand(1)), plan.operands[1]));
  Instruction* inside = nullptr;
  indices =
      ShiftIndices(indices, attr.index_vector_dim, attr.start_index_map, dims, operand, global, true, &inside, context);
  const Shape local_shape = ShardShape(shape, result);
  Instruction* gathered = context.Clone(instruction, local_shape, {local, indices});
  auto& sizes = gathered->mutable_attr<hlo::GatherAttr>().slice_sizes;
  for (int64_t d = 0; d < global.rank(); ++d) {
    if (sizes[d] == global.dim(d) && !Has(dims, d)) sizes[d] = local->shape().dim(d);
  }
  DimVector batch;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!Has(attr.offset_dims, d)) batch.push_back(d);
  }
  Instruction* mask = builder.Broadcast(inside, WithDType(local_shape, DType::kPred), batch);
  Instruction* zero = builder.Splat(local_shape, 0);
  context.Set(instruction, builder.Select(mask, gathered, zero), result);
  return absl::OkStatus();
}

absl::Status LocalizeScatter(const Instruction& instruction, Context& context) {
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  if (instruction.operand_count() != 3 || rule.form != rules::RuleForm::kFactors)
    return LocalizeByRule(instruction, context);
  GW_ASSIGN_OR_RETURN(const std::optional<ScatterPlan> by_parts, PlanScatter(instruction, rule, context));
  if (!by_parts) return LocalizeByRule(instruction, context);
  GW_ASSIGN_OR_RETURN(const OpPlan by_rule, PlanOp(instruction, rule, OptionsFor(instruction), context));
  if (by_rule.cost <= by_parts->plan.cost) return LocalizeByChoice(instruction, context);

  const auto& attr = instruction.attr<hlo::ScatterAttr>();
  const OpPlan& plan = by_parts->plan;
  const Shape global = WithoutLayout(instruction.operand(0)->shape());
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> operands, PreparedOperands(instruction, rule, plan, context));
  operands[0] = ShieldedSlice(operands[0], context.builder());
  operands[1] = ShiftIndices(operands[1], attr.index_vector_dim, attr.scatter_dims_to_operand_dims, by_parts->dims,
                             plan.operands[0], global, false, nullptr, context);
  Instruction* local = context.Clone(instruction, ShardShape(global, plan.results[0]), std::move(operands));
  context.Set(instruction, local, plan.results[0]);
  return absl::OkStatus();
}

}  // namespace gangway::partition
