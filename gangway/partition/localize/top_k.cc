// topk along a split dimension: every shard finds its own candidates, the best of all of them are the result.
#include <algorithm>
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

// positions [..., k] of elements along the last dimension of x [..., n]: those elements.
Instruction* TakeAlongLast(Instruction* x, Instruction* positions, Builder& builder) {
  const int64_t rank = x->shape().rank();
  hlo::GatherAttr attr;
  for (int64_t d = 0; d + 1 < rank; ++d) {
    attr.operand_batching_dims.push_back(d);
    attr.start_indices_batching_dims.push_back(d);
  }
  attr.start_index_map = attr.collapsed_slice_dims = {rank - 1};
  attr.index_vector_dim = rank;
  attr.slice_sizes = DimVector(rank, 1);
  return builder.Add(Opcode::kGather, {x, positions}, attr);
}

std::pair<Instruction*, Instruction*> TopK(const Instruction& of, Instruction* x, int64_t k, Context& context) {
  Shape values = WithoutLayout(x->shape());
  values.set_dim(values.rank() - 1, k);
  const Shape both = Shape::Tuple({values, WithDType(values, DType::kS32)});
  Instruction* top = context.Clone(of, both, {x});
  top->mutable_attr<hlo::TopKAttr>().k = k;
  return {context.builder().GetTupleElement(top, 0), context.builder().GetTupleElement(top, 1)};
}

}  // namespace

absl::Status LocalizeTopK(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  const auto& attr = instruction.attr<hlo::TopKAttr>();
  const Shape global = value.global;
  const int64_t last = global.rank() - 1;
  if (!SameMesh(value.sharding.mesh, context.mesh()) || !value.sharding.IsSplit(last) || attr.k == 0 ||
      instruction.shape().tuple()[1].dtype() != DType::kS32) {
    return LocalizeByRule(instruction, context);
  }
  Sharding held = value.sharding;
  held.unreduced.clear();
  Sharding result = held;
  result.dims[last].axes.clear();
  const int64_t shards = held.ShardCount(last), extent = ShardExtent(global.dim(last), shards);
  const int64_t own = std::min(attr.k, extent);

  // Every device receives the values and the places of the others' candidates.
  Shape candidates = ShardShape(global, result);
  candidates.set_dim(last, own * (shards - 1));
  double cost = context.ReshardCost(value, held) + 2 * kBytesPerCollective +
                static_cast<double>(candidates.ByteSize()) +
                static_cast<double>(WithDType(candidates, DType::kS32).ByteSize());
  for (int64_t leaf = 0; leaf < 2; ++leaf) cost += ResultCost(instruction, leaf, result, context);
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const OpPlan by_rule, PlanOp(instruction, rule, OptionsFor(instruction), context));
  if (by_rule.cost <= cost) return LocalizeByChoice(instruction, context);

  Builder& builder = context.builder();
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, held));
  const Reduction order = attr.largest ? Reduction::kMax : Reduction::kMin;
  local = context.MaskPadding(local, held, global, {last}, builder.Constant(ReductionIdentity(order, global.dtype())));
  auto [values, places] = TopK(instruction, local, own, context);
  places = builder.Binary(Opcode::kAdd, places,
                          builder.BroadcastScalar(context.ShardOffset(held, global, last), places->shape()));
  values = context.collectives().AllGather(values, last, *held.mesh, held.dims[last].axes);
  places = context.collectives().AllGather(places, last, *held.mesh, held.dims[last].axes);
  // Candidates lie in the order of the array where they are equal, so the first of equals stays the first.
  auto [best, which] = TopK(instruction, values, attr.k, context);
  const Shape& shape = instruction.shape();
  context.Set(instruction,
              LocalValues{{best, result, WithoutLayout(shape.tuple()[0]), nullptr},
                          {TakeAlongLast(places, which, builder), result, WithoutLayout(shape.tuple()[1]), nullptr}});
  return absl::OkStatus();
}

}  // namespace gangway::partition
