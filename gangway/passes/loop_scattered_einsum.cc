#include "gangway/passes/loop_scattered_einsum.h"

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

// At step s the device at place p adds to the sum of part p - 1 - s, which came from the place before: after all steps
// it holds its own. What goes the other way is mirrored: part p + 1 + s.
class ScatterLoop {
 public:
  ScatterLoop(const ScatteredEinsum& einsum, int64_t* next_channel)
      : einsum_(einsum),
        ring_(*einsum.scatter, next_channel),
        both_ways_(ring_.GoesBothWays() && einsum.tile % 2 == 0),
        width_(both_ways_ ? einsum.tile / 2 : einsum.tile),
        module_(*einsum.dot->parent()->module()) {}

  void Emit() {
    Builder builder(einsum_.dot->parent());
    builder.set_metadata(einsum_.dot->metadata());
    State state{builder.Index(0), ring_.Place(builder), einsum_.dot->operand(0), einsum_.dot->operand(1)};
    state.sum = Share(builder, state, Part(builder, state, builder.Index(0), 1), 0);
    if (both_ways_) state.back = Share(builder, state, Part(builder, state, builder.Index(0), -1), width_);
    Instruction* start = Packed(builder, state);
    Instruction* loop =
        builder.Add(Opcode::kWhile, {start}, {}, {Condition(start->shape()), Body(start->shape())}, start->shape());
    state = Unpacked(builder, loop);
    Instruction* result = both_ways_ ? builder.Concatenate({state.sum, state.back}, einsum_.result_dim) : state.sum;
    einsum_.scatter->ReplaceAllUsesWith(result);
  }

 private:
  struct State {
    Instruction *step, *place, *left, *right;
    Instruction *sum = nullptr, *back = nullptr;  // `back`: of the half that goes the other way
  };

  Instruction* Packed(Builder& builder, const State& state) const {
    std::vector<Instruction*> elements = {state.step, state.place, state.left, state.right, state.sum};
    if (both_ways_) elements.push_back(state.back);
    return builder.Tuple(std::move(elements));
  }

  State Unpacked(Builder& builder, Instruction* tuple) const {
    const auto element = [&](int64_t i) { return builder.GetTupleElement(tuple, i); };
    State state{element(0), element(1), element(2), element(3), element(4)};
    if (both_ways_) state.back = element(5);
    return state;
  }

  // The part that is here at `step`, on its way to later places (1) or to earlier ones (-1).
  Instruction* Part(Builder& builder, const State& state, Instruction* step, int64_t way) const {
    const Opcode towards = way > 0 ? Opcode::kSubtract : Opcode::kAdd;
    Instruction* number = builder.Binary(towards, state.place, builder.Index(1));
    return ring_.Wrapped(builder, builder.Binary(towards, number, step));
  }

  // `width_` elements of `dim` from `start` on; the operand itself where it has no such dimension.
  Instruction* Cut(Builder& builder, Instruction* operand, int64_t dim, Instruction* start) const {
    if (dim < 0) return operand;
    std::vector<Instruction*> starts(operand->shape().rank(), builder.Index(0));
    starts[dim] = start;
    DimVector sizes = operand->shape().dims();
    sizes[dim] = width_;
    return builder.DynamicSlice(operand, std::move(starts), std::move(sizes));
  }

  // What this device adds to a part, from `offset` in it on.
  Instruction* Share(Builder& builder, const State& state, Instruction* part, int64_t offset) const {
    Instruction* start = builder.Binary(Opcode::kMultiply, part, builder.Index(einsum_.tile));
    if (offset > 0) start = builder.Binary(Opcode::kAdd, start, builder.Index(offset));
    Shape shape = WithoutLayout(einsum_.dot->shape());
    shape.set_dim(einsum_.result_dim, width_);
    return builder.computation()->AddClone(
        *einsum_.dot, shape,
        {Cut(builder, state.left, einsum_.left_dim, start), Cut(builder, state.right, einsum_.right_dim, start)});
  }

  Computation* Condition(const Shape& shape) const {
    Computation* condition = module_.AddComputation("more_parts");
    Builder builder(condition);
    Instruction* step = builder.GetTupleElement(builder.Parameter(0, shape, "state"), 0);
    condition->set_root(builder.Compare(hlo::ComparisonDirection::kLt, step, builder.Index(ring_.size() - 1)));
    return condition;
  }

  Computation* Body(const Shape& shape) const {
    Computation* body = module_.AddComputation("next_part");
    Builder builder(body);
    builder.set_metadata(einsum_.dot->metadata());
    State state = Unpacked(builder, builder.Parameter(0, shape, "state"));
    state.step = builder.Binary(Opcode::kAdd, state.step, builder.Index(1));
    const auto next = [&](Instruction* sum, int64_t way, int64_t offset) {
      Instruction* share = Share(builder, state, Part(builder, state, state.step, way), offset);
      return builder.Binary(Opcode::kAdd, ring_.Pass(builder, sum, -way), share);
    };
    state.sum = next(state.sum, 1, 0);
    if (both_ways_) state.back = next(state.back, -1, width_);
    body->set_root(Packed(builder, state));
    return body;
  }

  const ScatteredEinsum einsum_;
  const DeviceRing ring_;
  const bool both_ways_;
  const int64_t width_;  // of what travels, along the scattered dimension
  hlo::Module& module_;
};

// The operand's dimensions that the result has, in its order.
DimVector FreeDims(const Instruction& operand, const DimVector& batch, const DimVector& contracted) {
  DimVector free;
  for (int64_t d = 0; d < operand.shape().rank(); ++d) {
    if (PositionOf(d, batch) < 0 && PositionOf(d, contracted) < 0) free.push_back(d);
  }
  return free;
}

bool IsSum(const Instruction& scatter) {
  const Computation& combiner = *scatter.called()[0];
  return combiner.size() == 3 && combiner.root()->opcode() == Opcode::kAdd;
}

}  // namespace

std::optional<ScatteredEinsum> AsScatteredEinsum(Instruction* scatter) {
  if (scatter->opcode() != Opcode::kReduceScatter || !scatter->shape().IsArray()) return std::nullopt;
  Instruction* dot = scatter->operand(0);
  if (dot->opcode() != Opcode::kDot || dot->users().size() != 1 || scatter->operand_count() != 1) return std::nullopt;
  // Partial sums of fewer bits would be rounded on their way.
  if (ByteWidth(dot->shape().dtype()) < 4 || !IsSum(*scatter)) return std::nullopt;
  const auto& attr = scatter->attr<hlo::CollectiveAttr>();
  ScatteredEinsum found{dot, scatter};
  found.shards = hlo::LargestGroup(attr.groups, scatter->parent()->module()->config().num_partitions);
  found.result_dim = attr.dimension.value_or(-1);
  if (found.shards < 2 || found.result_dim < 0) return std::nullopt;
  found.tile = scatter->shape().dim(found.result_dim);

  const auto& product = dot->attr<hlo::DotAttr>();
  const int64_t batch = static_cast<int64_t>(product.lhs_batch.size());
  const DimVector left = FreeDims(*dot->operand(0), product.lhs_batch, product.lhs_contracting);
  const DimVector right = FreeDims(*dot->operand(1), product.rhs_batch, product.rhs_contracting);
  const int64_t lefts = static_cast<int64_t>(left.size());
  if (found.result_dim < batch) {
    found.left_dim = product.lhs_batch[found.result_dim];
    found.right_dim = product.rhs_batch[found.result_dim];
  } else if (found.result_dim < batch + lefts) {
    found.left_dim = left[found.result_dim - batch];
  } else {
    found.right_dim = right[found.result_dim - batch - lefts];
  }
  return found;
}

absl::StatusOr<bool> LoopScatteredEinsums(hlo::Module& module,
                                          const std::function<bool(const ScatteredEinsum&)>& worthwhile) {
  return LoopEachEinsum<ScatterLoop>(module, AsScatteredEinsum, worthwhile);
}

absl::StatusOr<bool> RunLoopScatteredEinsums(hlo::Module& module) {
  return LoopScatteredEinsums(module, [](const ScatteredEinsum&) { return true; });
}

}  // namespace gangway::passes
