// Random programs: dynamic slices, gather, scatter.
#include <algorithm>
#include <numeric>

#include "gangway/hlo/builder.h"
#include "tests/equivalence/random_generator.h"

namespace gangway::equivalence {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

std::vector<Instruction*> Generator::Starts(const Shape& shape) {
  std::vector<Instruction*> starts;
  for (int64_t extent : shape.dims()) {
    // Some are out of bounds, some come from data.
    Instruction* start = builder_->Index(Below(extent + 4) - 2);
    for (Instruction* candidate : pool_) {
      if (candidate->shape() == Shape::Scalar(DType::kS32) && Chance(40)) start = candidate;
    }
    starts.push_back(start);
  }
  return starts;
}

DimVector Generator::Part(const Shape& shape) {
  DimVector sizes;
  for (int64_t extent : shape.dims()) sizes.push_back(Chance(50) ? extent : 1 + Below(extent));
  return sizes;
}

Instruction* Generator::DynamicSlice() {
  Instruction* x = Any();
  return builder_->DynamicSlice(x, Starts(x->shape()), Part(x->shape()));
}

Instruction* Generator::DynamicUpdateSlice() {
  Instruction* x = Any();
  Instruction* update = Like(Shape(x->shape().dtype(), Part(x->shape())));
  if (Chance(50)) update = builder_->Binary(Opcode::kAdd, update, builder_->Splat(update->shape(), 3));
  return builder_->DynamicUpdateSlice(x, update, Starts(x->shape()));
}

// Indices of shape [n, 1] into dimension `dim`, some out of bounds.
Instruction* Generator::Indices(int64_t n, int64_t extent) {
  Instruction* iota = builder_->Iota(Shape(DType::kS32, {n, 1}), 0);
  Instruction* scaled = builder_->Binary(Opcode::kMultiply, iota, builder_->Splat(iota->shape(), 5));
  return builder_->Binary(
      Opcode::kSubtract,
      builder_->Binary(Opcode::kRemainder, scaled, builder_->Splat(iota->shape(), static_cast<double>(extent + 2))),
      builder_->Splat(iota->shape(), 1));
}

Instruction* Generator::Gather() {
  Instruction* x = Any();
  const int64_t rank = x->shape().rank();
  if (rank == 0) return nullptr;
  const int64_t dim = Below(rank), n = RandomExtent();
  hlo::GatherAttr attr;
  attr.index_vector_dim = 1;
  attr.start_index_map = {dim};
  attr.collapsed_slice_dims = {dim};
  attr.slice_sizes = x->shape().dims();
  attr.slice_sizes[dim] = 1;
  if (Chance(20)) {  // a window along another dimension
    for (int64_t d = 0; d < rank; ++d) {
      if (d != dim) attr.slice_sizes[d] = 1 + Below(x->shape().dim(d));
    }
  }
  for (int64_t d = 1; d < rank; ++d) attr.offset_dims.push_back(d);
  return builder_->Add(Opcode::kGather, {x, Indices(n, x->shape().dim(dim))}, attr);
}

Instruction* Generator::Scatter() {
  Instruction* x = Any();
  const int64_t rank = x->shape().rank();
  if (rank == 0) return nullptr;
  const int64_t dim = Below(rank), n = RandomExtent();
  hlo::ScatterAttr attr;
  attr.index_vector_dim = 1;
  attr.scatter_dims_to_operand_dims = {dim};
  attr.inserted_window_dims = {dim};
  DimVector update = {n};
  for (int64_t d = 0; d < rank; ++d) {
    if (d == dim) continue;
    attr.update_window_dims.push_back(static_cast<int64_t>(update.size()));
    update.push_back(x->shape().dim(d));
  }
  Instruction* updates = Like(Shape(x->shape().dtype(), update));
  const Opcode combiner = Chance(70) ? Opcode::kAdd : Opcode::kMaximum;
  return builder_->Add(Opcode::kScatter, {x, Indices(n, x->shape().dim(dim)), updates}, attr,
                       {builder_->ScalarComputation(combiner, x->shape().dtype())});
}

// Row b of the indices looks into row b of the operand.
Instruction* Generator::GatherInBatches() {
  Instruction* x = AnyOfRank(2);
  if (x == nullptr) return nullptr;
  const int64_t rank = x->shape().rank(), batch = x->shape().dim(0), n = RandomExtent();
  Instruction* indices = Indices(n, x->shape().dim(1));
  indices = builder_->Broadcast(indices, Shape(DType::kS32, {batch, n, 1}), {1, 2});
  Instruction* rows = builder_->Iota(indices->shape(), 0);
  indices = builder_->Binary(Opcode::kRemainder, builder_->Binary(Opcode::kAdd, indices, rows),
                             builder_->Splat(indices->shape(), static_cast<double>(x->shape().dim(1))));
  hlo::GatherAttr attr;
  attr.index_vector_dim = 2;
  attr.start_index_map = {1};
  attr.collapsed_slice_dims = {1};
  attr.operand_batching_dims = {0};
  attr.start_indices_batching_dims = {0};
  attr.slice_sizes = x->shape().dims();
  attr.slice_sizes[0] = attr.slice_sizes[1] = 1;
  for (int64_t d = 2; d < rank; ++d) attr.offset_dims.push_back(d);
  return builder_->Add(Opcode::kGather, {x, indices}, attr);
}

}  // namespace gangway::equivalence
