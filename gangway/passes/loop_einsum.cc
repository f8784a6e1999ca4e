#include "gangway/passes/loop_einsum.h"

#include <utility>
#include <vector>

#include "gangway/hlo/builder.h"
#include "gangway/hlo/replica_groups.h"
#include "gangway/passes/device_ring.h"
#include "gangway/passes/dimension_list.h"
#include "gangway/passes/loop_each_einsum.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

class EinsumLoop {
 public:
  EinsumLoop(const GatheredEinsum& einsum, int64_t* next_channel)
      : einsum_(einsum),
        ring_(*einsum.gather, next_channel),
        both_ways_(ring_.GoesBothWays()),
        module_(*einsum.dot->parent()->module()) {}

  void Emit() {
    Builder builder(einsum_.dot->parent());
    builder.set_metadata(einsum_.dot->metadata());
    State state;
    state.step = builder.Index(0);
    state.place = ring_.Place(builder);
    state.other = einsum_.dot->operand(1 - einsum_.side);
    state.sum = builder.Splat(WithoutLayout(einsum_.dot->shape()), 0);
    state.shard = einsum_.gather->operand(0);
    if (both_ways_) state.behind = ring_.Pass(builder, state.shard, -1);

    const int64_t steps = both_ways_ ? einsum_.shards / 2 : einsum_.shards;
    Instruction* start = Packed(builder, state);
    Instruction* loop = builder.Add(Opcode::kWhile, {start}, {},
                                    {Condition(start->shape(), steps - 1), Body(start->shape())}, start->shape());
    state = Unpacked(builder, loop);
    einsum_.dot->ReplaceAllUsesWith(Multiplied(builder, state));
  }

 private:
  struct State {
    Instruction *step, *place, *other, *sum, *shard;
    Instruction* behind = nullptr;  // the shard that comes from the other side
  };

  Instruction* Packed(Builder& builder, const State& state) const {
    std::vector<Instruction*> elements = {state.step, state.place, state.other, state.sum, state.shard};
    if (both_ways_) elements.push_back(state.behind);
    return builder.Tuple(std::move(elements));
  }

  State Unpacked(Builder& builder, Instruction* tuple) const {
    const auto element = [&](int64_t i) { return builder.GetTupleElement(tuple, i); };
    State state{element(0), element(1), element(2), element(3), element(4)};
    if (both_ways_) state.behind = element(5);
    return state;
  }

  // The sum with what shard `number` adds to it, or puts into it.
  Instruction* WithShard(Builder& builder, const State& state, Instruction* sum, Instruction* shard,
                         Instruction* number) const {
    Instruction *start = builder.Binary(Opcode::kMultiply, number, builder.Index(einsum_.tile)), *other = state.other;
    Shape shape = WithoutLayout(einsum_.dot->shape());
    const auto starts = [&](const Shape& of, int64_t dim) {
      std::vector<Instruction*> places(of.rank(), builder.Index(0));
      places[dim] = start;
      return places;
    };
    if (einsum_.other_dim >= 0) {
      DimVector sizes = other->shape().dims();
      sizes[einsum_.other_dim] = einsum_.tile;
      other = builder.DynamicSlice(other, starts(other->shape(), einsum_.other_dim), std::move(sizes));
    } else {
      shape.set_dim(einsum_.result_dim, einsum_.tile);
    }
    std::vector<Instruction*> operands = {shard, other};
    if (einsum_.side == 1) std::swap(operands[0], operands[1]);
    Instruction* part = builder.computation()->AddClone(*einsum_.dot, shape, std::move(operands));
    if (einsum_.other_dim >= 0) return builder.Binary(Opcode::kAdd, sum, part);
    return builder.DynamicUpdateSlice(sum, part, starts(shape, einsum_.result_dim));
  }

  Instruction* Multiplied(Builder& builder, const State& state) const {
    Instruction* ahead = builder.Binary(Opcode::kAdd, state.place, state.step);
    Instruction* sum = WithShard(builder, state, state.sum, state.shard, ring_.Wrapped(builder, ahead));
    if (!both_ways_) return sum;
    Instruction* behind = builder.Binary(Opcode::kSubtract, state.place, state.step);
    behind = builder.Binary(Opcode::kSubtract, behind, builder.Index(1));
    return WithShard(builder, state, sum, state.behind, ring_.Wrapped(builder, behind));
  }

  Computation* Condition(const Shape& shape, int64_t steps) const {
    Computation* condition = module_.AddComputation("more_shards");
    Builder builder(condition);
    Instruction* step = builder.GetTupleElement(builder.Parameter(0, shape, "state"), 0);
    condition->set_root(builder.Compare(hlo::ComparisonDirection::kLt, step, builder.Index(steps)));
    return condition;
  }

  Computation* Body(const Shape& shape) {
    Computation* body = module_.AddComputation("next_shard");
    Builder builder(body);
    builder.set_metadata(einsum_.dot->metadata());
    State state = Unpacked(builder, builder.Parameter(0, shape, "state"));
    state.sum = Multiplied(builder, state);
    state.shard = ring_.Pass(builder, state.shard, 1);
    if (both_ways_) state.behind = ring_.Pass(builder, state.behind, -1);
    state.step = builder.Binary(Opcode::kAdd, state.step, builder.Index(1));
    body->set_root(Packed(builder, state));
    return body;
  }

  const GatheredEinsum einsum_;
  const DeviceRing ring_;
  const bool both_ways_;
  hlo::Module& module_;
};

std::optional<GatheredEinsum> GatheredOn(Instruction* dot, int64_t side) {
  Instruction* gather = dot->operand(side);
  if (gather->opcode() != Opcode::kAllGather || !gather->shape().IsArray() || gather->users().size() != 1) {
    return std::nullopt;
  }
  const auto& attr = gather->attr<hlo::CollectiveAttr>();
  const auto& product = dot->attr<hlo::DotAttr>();
  const bool is_left = side == 0;
  const DimVector& batch = is_left ? product.lhs_batch : product.rhs_batch;
  const DimVector& contracted = is_left ? product.lhs_contracting : product.rhs_contracting;
  GatheredEinsum found{gather, dot, side};
  const int64_t dim = attr.dimension.value_or(-1);
  found.shards = hlo::LargestGroup(attr.groups, dot->parent()->module()->config().num_partitions);
  if (dim < 0 || found.shards < 2 || PositionOf(dim, batch) >= 0) return std::nullopt;
  found.tile = gather->operand(0)->shape().dim(dim);
  if (const int64_t place = PositionOf(dim, contracted); place >= 0) {
    if (ByteWidth(dot->shape().dtype()) < 4) return std::nullopt;  // partial sums would be rounded
    found.other_dim = (is_left ? product.rhs_contracting : product.lhs_contracting)[place];
    return found;
  }
  // Results are batch, free of the left, free of the right.
  const int64_t left_rank = dot->operand(0)->shape().rank();
  found.result_dim =
      is_left ? static_cast<int64_t>(batch.size()) : left_rank - static_cast<int64_t>(product.lhs_contracting.size());
  for (int64_t d = 0; d < dim; ++d) found.result_dim += PositionOf(d, batch) < 0 && PositionOf(d, contracted) < 0;
  return found;
}

}  // namespace

std::optional<GatheredEinsum> AsGatheredEinsum(Instruction* dot) {
  if (dot->opcode() != Opcode::kDot || dot->operand(0) == dot->operand(1)) return std::nullopt;
  for (int64_t side : {0, 1}) {
    if (auto found = GatheredOn(dot, side)) return found;
  }
  return std::nullopt;
}

absl::StatusOr<bool> LoopEinsums(hlo::Module& module, const std::function<bool(const GatheredEinsum&)>& worthwhile) {
  return LoopEachEinsum<EinsumLoop>(module, AsGatheredEinsum, worthwhile);
}

absl::StatusOr<bool> RunLoopEinsums(hlo::Module& module) {
  return LoopEinsums(module, [](const GatheredEinsum&) { return true; });
}

}  // namespace gangway::passes
