#include "gangway/partition/localize/fft_line.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/op_plan.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kMaxLength = int64_t{1} << 31;  // places are 32-bit numbers

}  // namespace

LineFft::LineFft(const Instruction& instruction, Context& context)
    : instruction_(instruction),
      context_(context),
      value_(context.Value(*instruction.operand(0))),
      dim_(value_.global.rank() - 1) {}

bool LineFft::Choose() {
  const auto& attr = instruction_.attr<hlo::FftAttr>();
  const bool is_complex = attr.type == hlo::FftType::kFft || attr.type == hlo::FftType::kIfft;
  if (attr.lengths.size() != 1 || !is_complex || !SameMesh(value_.sharding.mesh, context_.mesh())) return false;
  held_ = value_.sharding;
  held_.unreduced.clear();
  const int64_t shards = held_.ShardCount(dim_), length = value_.global.dim(dim_);
  if (shards < 2 || length % (shards * shards) != 0 || length >= kMaxLength) return false;
  // As square as it goes, both sides multiples of the shards.
  for (int64_t rest = length / (shards * shards), side = 1; side * side <= rest; ++side) {
    if (rest % side == 0) rows_ = shards * side;
  }
  columns_ = length / rows_;
  return true;
}

Shape LineFft::MatrixShape(int64_t rows, int64_t columns) const {
  DimVector dims = value_.global.dims();
  dims[dim_] = rows;
  dims.push_back(columns);
  return Shape(value_.global.dtype(), dims);
}

Sharding LineFft::MatrixSharding(int64_t split) const {
  Sharding sharding = held_;
  sharding.dims.push_back(DimSharding{});
  sharding.dims[dim_].axes.clear();
  sharding.dims[dim_ + split].axes = held_.dims[dim_].axes;
  return sharding.Closed();
}

double LineFft::Cost() {
  ReshardPlanner& planner = *context_.module().planner;
  const Sharding by_row = MatrixSharding(0), by_column = MatrixSharding(1);
  return context_.ReshardCost(value_, held_) + planner.Cost(by_row, by_column, MatrixShape(rows_, columns_)) +
         planner.Cost(by_row, by_column, MatrixShape(columns_, rows_)) +
         planner.Cost(by_column, by_row, MatrixShape(columns_, rows_)) + ResultCost(instruction_, 0, held_, context_);
}

absl::Status LineFft::Emit() {
  Builder& builder = context_.builder();
  const Sharding by_row = MatrixSharding(0), by_column = MatrixSharding(1);
  const auto moved = [&](Instruction* x, int64_t rows, int64_t columns, const Sharding& from, const Sharding& to) {
    return context_.Reshard(LocalValue{x, from, MatrixShape(rows, columns), nullptr}, to);
  };
  GW_ASSIGN_OR_RETURN(Instruction * x, context_.Reshard(value_, held_));
  x = builder.Reshape(x, ShardShape(MatrixShape(rows_, columns_), by_row).dims());
  GW_ASSIGN_OR_RETURN(x, moved(x, rows_, columns_, by_row, by_column));
  x = TransformLast(Swapped(x), rows_);  // a column's frequencies in a row
  x = builder.Binary(Opcode::kMultiply, x, Roots(WithoutLayout(x->shape())));
  GW_ASSIGN_OR_RETURN(x, moved(x, columns_, rows_, by_row, by_column));
  x = Swapped(TransformLast(Swapped(x), columns_));
  GW_ASSIGN_OR_RETURN(x, moved(x, columns_, rows_, by_column, by_row));
  context_.Set(instruction_, builder.Reshape(x, ShardShape(value_.global, held_).dims()), held_);
  return absl::OkStatus();
}

Instruction* LineFft::Swapped(Instruction* x) {
  DimVector order;
  for (int64_t d = 0; d < x->shape().rank(); ++d) order.push_back(d);
  std::swap(order[dim_], order[dim_ + 1]);
  return context_.builder().Transpose(x, order);
}

Instruction* LineFft::TransformLast(Instruction* x, int64_t length) {
  return context_.builder().Add(Opcode::kFft, {x}, hlo::FftAttr{instruction_.attr<hlo::FftAttr>().type, {length}});
}

// exp(-2 pi i c f / n) at column c and frequency f, for the columns of the shard; inverse transforms turn the other
// way.
Instruction* LineFft::Roots(const Shape& shape) {
  Builder& builder = context_.builder();
  const DType real = shape.dtype() == DType::kC128 ? DType::kF64 : DType::kF32;
  const Shape places = Shape(DType::kS32, {shape.dim(dim_), shape.dim(dim_ + 1)}), parts = WithDType(places, real);
  Instruction* offset = context_.coordinates().Scaled(held_.mesh, held_.dims[dim_].axes, shape.dim(dim_));
  Instruction* column = builder.Binary(Opcode::kAdd, builder.Iota(places, 0), builder.BroadcastScalar(offset, places));
  Instruction* product = builder.Binary(Opcode::kMultiply, column, builder.Iota(places, 1));  // less than n
  const bool inverse = instruction_.attr<hlo::FftAttr>().type == hlo::FftType::kIfft;
  const double step = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(rows_ * columns_);
  Instruction* angle = builder.Binary(Opcode::kMultiply, builder.Convert(product, real), builder.Splat(parts, step));
  Instruction* roots =
      builder.Binary(Opcode::kComplex, builder.Unary(Opcode::kCosine, angle), builder.Unary(Opcode::kSine, angle));
  return builder.Broadcast(roots, shape, {dim_, dim_ + 1});
}

}  // namespace gangway::partition
