// concatenate along a split dimension: an arrangement of what is joined. Rolls, shifts and stencils that are written as
// slices joined again move what crosses a border of shards, no more.
#include <algorithm>
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/emit_arrangement.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"
#include "gangway/partition/stretches.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

// Shards of a result whose dimension `dim` is arranged.
class JoinPlan {
 public:
  JoinPlan(const Instruction& joined, int64_t dim, Sharding result, Context& context)
      : dim_(dim),
        result_(std::move(result)),
        shape_(ShardShape(WithoutLayout(joined.shape()), result_)),
        context_(context) {}

  double CostOf(const ArrangedDim& arranged) {
    double cost = 0, row_bytes = 0;
    for (const ArrangedDim::Source& source : arranged.sources) {
      if (source.value->shape().rank() == 0) continue;
      if (!source.operands.empty()) {
        for (const ArrangedDim& operand : source.operands) cost += CostOf(operand);
        continue;
      }
      const LocalValue& value = context_.Value(*source.value);
      const Sharding held = HeldAs(value);
      const Shape shard = ShardShape(value.global, held);
      cost += context_.ReshardCost(value, held);
      row_bytes = static_cast<double>(shard.ByteSize()) / static_cast<double>(std::max<int64_t>(1, shard.dim(dim_)));
    }
    return cost + ArrangementCost(PlanOf(arranged), row_bytes);
  }

  absl::StatusOr<Instruction*> Emit(const ArrangedDim& arranged) {
    std::vector<Instruction*> sources;
    for (const ArrangedDim::Source& source : arranged.sources) {
      GW_ASSIGN_OR_RETURN(Instruction * local, source.operands.empty() ? Held(*source.value) : Made(source));
      if (source.mirrored) {
        local = context_.builder().Add(hlo::Opcode::kReverse, {local}, hlo::DimensionsAttr{{dim_}});
      }
      sources.push_back(local);
    }
    Shape shape = WithDType(shape_, sources[0]->shape().dtype());
    return EmitArrangement(PlanOf(arranged), dim_, result_.dims[dim_].axes, std::move(shape), std::move(sources),
                           context_);
  }

  // An elementwise operation is computed where its value is needed unless moving the value is cheaper.
  void MoveWhereCheaper(ArrangedDim* arranged) {
    for (ArrangedDim::Source& source : arranged->sources) {
      if (source.operands.empty()) continue;
      for (ArrangedDim& operand : source.operands) MoveWhereCheaper(&operand);
      const double made = CostOf(*arranged);
      std::vector<ArrangedDim> operands = std::move(source.operands);
      source.operands.clear();
      if (CostOf(*arranged) >= made) source.operands = std::move(operands);
    }
  }

 private:
  // A value that is whole along the dimension stays so: every shard takes its own stretch.
  Sharding HeldAs(const LocalValue& value) const {
    Sharding held = result_;
    if (!value.sharding.IsSplit(dim_)) held.dims[dim_].axes.clear();
    return held;
  }

  absl::StatusOr<Instruction*> Held(const Instruction& instruction) {
    const LocalValue value = context_.Value(instruction);
    return instruction.shape().rank() == 0 ? context_.Replicate(value) : context_.Reshard(value, HeldAs(value));
  }

  absl::StatusOr<Instruction*> Made(const ArrangedDim::Source& source) {
    std::vector<Instruction*> operands;
    size_t next = 0;
    for (const Instruction* operand : source.value->operands()) {
      GW_ASSIGN_OR_RETURN(Instruction * local,
                          operand->shape().rank() == 0 ? Held(*operand) : Emit(source.operands[next++]));
      operands.push_back(local);
    }
    Shape shape = ShardShape(WithoutLayout(source.value->shape()), result_);
    shape.set_dim(dim_, PlanOf(source.operands[0]).Tile());
    return context_.Clone(*source.value, shape, std::move(operands));
  }

  ArrangementPlan PlanOf(const ArrangedDim& arranged) const {
    std::vector<StretchSource> sources;
    for (const ArrangedDim::Source& source : arranged.sources) {
      if (source.value->shape().rank() == 0 || !source.operands.empty()) {
        sources.push_back({StretchSource::Kind::kMade, arranged.extent, false});
        continue;
      }
      const LocalValue& value = context_.Value(*source.value);
      const auto kind = HeldAs(value).IsSplit(dim_) ? StretchSource::Kind::kSplit : StretchSource::Kind::kWhole;
      sources.push_back({kind, value.global.dim(dim_), source.mirrored});
    }
    return PlanArrangement(arranged.extent, ProductOf(result_.dims[dim_].axes), arranged.stretches, std::move(sources));
  }

  const int64_t dim_;
  const Sharding result_;
  const Shape shape_;  // of its shard
  Context& context_;
};

// Equal pieces, as many of them for each shard of the result: stacked they are an array whose two dimensions exchange
// the split, in one go whatever their number.
class StackPlan {
 public:
  StackPlan(const Instruction& joined, int64_t dim, const Sharding& result, Context& context)
      : joined_(joined), dim_(dim), result_(result), context_(context), from_(result), to_(result) {
    const Shape& piece = joined.operand(0)->shape();
    DimVector dims = WithoutLayout(joined.shape()).dims();
    dims[dim] = piece.dim(dim);
    dims.insert(dims.begin() + dim, joined.operand_count());
    stack_ = Shape(joined.shape().dtype(), std::move(dims));
    from_.dims.insert(from_.dims.begin() + dim, DimSharding{});
    to_.dims.insert(to_.dims.begin() + dim + 1, DimSharding{});
  }

  bool Applies() const {
    const int64_t shards = result_.ShardCount(dim_), extent = joined_.operand(0)->shape().dim(dim_);
    if (joined_.operand_count() % shards != 0 || extent % shards != 0) return false;
    return std::all_of(joined_.operands().begin(), joined_.operands().end(),
                       [&](const Instruction* piece) { return piece->shape().dim(dim_) == extent; });
  }

  double Cost() const {
    double cost = context_.module().planner->Cost(from_, to_, stack_);
    for (const Instruction* piece : joined_.operands()) cost += context_.ReshardCost(context_.Value(*piece), result_);
    return cost;
  }

  absl::StatusOr<Instruction*> Emit() const {
    std::vector<Instruction*> pieces;
    for (const Instruction* piece : joined_.operands()) {
      GW_ASSIGN_OR_RETURN(Instruction * local, context_.Reshard(LocalValue(context_.Value(*piece)), result_));
      pieces.push_back(local);
    }
    hlo::Builder& b = context_.builder();
    Instruction* stack = b.Reshape(b.Concatenate(std::move(pieces), dim_), ShardShape(stack_, {from_}).dims());
    GW_ASSIGN_OR_RETURN(stack, context_.Reshard(LocalValue{stack, from_, stack_}, to_));
    return b.Reshape(stack, ShardShape(WithoutLayout(joined_.shape()), {result_}).dims());
  }

 private:
  const Instruction& joined_;
  const int64_t dim_;
  const Sharding result_;
  Context& context_;
  Shape stack_;         // [..., pieces, extent of one, ...]
  Sharding from_, to_;  // of it
};

// Axes for the joined dimension: those that completion wants, else those of an operand.
AxisList JoinedAxes(const Instruction& instruction, int64_t dim, Context& context) {
  AxisList axes = context.Wanted(instruction).dims[dim].axes;
  for (const Instruction* operand : instruction.operands()) {
    if (axes.empty()) axes = context.Value(*operand).sharding.dims[dim].axes;
  }
  return ProductOf(axes) > instruction.shape().dim(dim) ? AxisList{} : axes;
}

bool AllOverOneMesh(const ArrangedDim& arranged, Context& context) {
  for (const ArrangedDim::Source& source : arranged.sources) {
    if (!SameMesh(context.Value(*source.value).sharding.mesh, context.mesh())) return false;
    for (const ArrangedDim& operand : source.operands) {
      if (!AllOverOneMesh(operand, context)) return false;
    }
  }
  return true;
}

bool HasArray(const ArrangedDim& arranged) {
  return std::any_of(arranged.sources.begin(), arranged.sources.end(),
                     [](const ArrangedDim::Source& source) { return source.value->shape().rank() > 0; });
}

}  // namespace

absl::Status LocalizeConcatenate(const Instruction& instruction, Context& context) {
  const int64_t dim = instruction.attr<hlo::DimensionsAttr>().dims[0];
  const AxisList axes = JoinedAxes(instruction, dim, context);
  if (axes.empty() || instruction.shape().ElementCount() == 0 ||
      !SameMesh(context.Wanted(instruction).mesh, context.mesh())) {
    return LocalizeByRule(instruction, context);
  }
  ArrangedDim arranged = ArrangedAlong(instruction, dim);
  if (!HasArray(arranged) || !AllOverOneMesh(arranged, context)) return LocalizeByRule(instruction, context);

  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  OpPlanOptions options = OptionsFor(instruction);
  GW_ASSIGN_OR_RETURN(const OpPlan by_rule, PlanOp(instruction, rule, options, context));
  options.without = axes;
  options.partial_ok.clear();
  GW_ASSIGN_OR_RETURN(const OpPlan others, PlanOp(instruction, rule, options, context));
  Sharding result = others.results[0];
  result.dims[dim].axes = axes;
  JoinPlan join(instruction, dim, result, context);
  join.MoveWhereCheaper(&arranged);
  const StackPlan stack(instruction, dim, result, context);
  const double arranging = join.CostOf(arranged);
  const bool is_stacked = stack.Applies() && stack.Cost() < arranging;
  const double cost = others.work / static_cast<double>(ProductOf(axes)) + (is_stacked ? stack.Cost() : arranging) +
                      ResultCost(instruction, 0, result, context);
  if (by_rule.cost <= cost) return LocalizeByChoice(instruction, context);
  GW_ASSIGN_OR_RETURN(Instruction * local, is_stacked ? stack.Emit() : join.Emit(arranged));
  context.Set(instruction, local, result);
  return absl::OkStatus();
}

}  // namespace gangway::partition
