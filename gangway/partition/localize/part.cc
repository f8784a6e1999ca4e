#include "gangway/partition/localize/part.h"

#include <algorithm>
#include <utility>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

Instruction* SliceAlong(Instruction* x, int64_t dim, Instruction* start, int64_t size, Builder& builder) {
  std::vector<Instruction*> starts(x->shape().rank(), builder.Index(0));
  starts[dim] = start;
  DimVector sizes = x->shape().dims();
  sizes[dim] = size;
  return builder.DynamicSlice(x, std::move(starts), std::move(sizes));
}

// x with `border` zeros on both sides.
Instruction* Bordered(Instruction* x, int64_t dim, int64_t border, Builder& builder) {
  std::vector<hlo::PadDim> pad(x->shape().rank());
  pad[dim].low = pad[dim].high = border;
  return builder.Pad(x, builder.Constant(Literal(Shape::Scalar(x->shape().dtype()))), std::move(pad));
}

// A block of `size` elements in the shard, as near to where the part lies as it goes.
struct Block {
  int64_t size = 0;
  Instruction* start = nullptr;  // in the shard
  Instruction* shift = nullptr;  // from the part's own start to the block's
};

Block BlockFor(Instruction* start, int64_t part, const Sharding& sharding, const Shape& global, int64_t dim,
               Context& context) {
  Builder& builder = context.builder();
  const int64_t extent = ShardExtent(global.dim(dim), sharding.ShardCount(dim));
  Block block;
  block.size = std::min(part, extent);
  Instruction* own = builder.Binary(Opcode::kSubtract, start, context.ShardOffset(sharding, global, dim));
  block.start = builder.Binary(Opcode::kMinimum, builder.Binary(Opcode::kMaximum, own, builder.Index(0)),
                               builder.Index(extent - block.size));
  block.shift = builder.Binary(Opcode::kSubtract, block.start, own);
  return block;
}

}  // namespace

absl::StatusOr<std::vector<Instruction*>> ReplicatedStarts(const Instruction& instruction, int64_t first,
                                                           Context& context) {
  std::vector<Instruction*> starts;
  for (int64_t i = first; i < instruction.operand_count(); ++i) {
    GW_ASSIGN_OR_RETURN(Instruction * start, context.Replicate(context.Value(*instruction.operand(i))));
    starts.push_back(start);
  }
  return starts;
}

Instruction* ClampedStart(Instruction* start, int64_t limit, Context& context) {
  return Clamped(start, 0, limit, context);
}

Instruction* Clamped(Instruction* x, int64_t low, int64_t high, Context& context) {
  Builder& builder = context.builder();
  const DType dtype = x->shape().dtype();
  const int bits = BitWidth(dtype);
  const auto bound = [&](int64_t value) {
    Literal scalar(Shape::Scalar(dtype));
    StoreInt64(dtype, value, scalar.data());
    Instruction* constant = builder.Constant(std::move(scalar));
    return x->shape().rank() == 0 ? constant : builder.BroadcastScalar(constant, WithoutLayout(x->shape()));
  };
  // The bound may not fit a narrow type; then nothing has to be cut.
  const bool fits = bits >= 64 || high < (int64_t{1} << (bits - (IsSigned(dtype) ? 1 : 0)));
  if (fits) x = builder.Binary(Opcode::kMinimum, x, bound(high));
  if (IsSigned(dtype)) x = builder.Binary(Opcode::kMaximum, x, bound(low));
  return dtype == DType::kS32 ? x : builder.Convert(x, DType::kS32);
}

Instruction* OwnPart(Instruction* local, const Sharding& sharding, const Shape& global, int64_t dim, Instruction* start,
                     int64_t size, Context& context) {
  Builder& builder = context.builder();
  const Block block = BlockFor(start, size, sharding, global, dim, context);
  Instruction* piece = SliceAlong(local, dim, block.start, block.size, builder);
  // Element j of the part is element j - shift of the block; a border that is long enough gives zeros to the others.
  Instruction* from = builder.Binary(Opcode::kSubtract, builder.Index(size), block.shift);
  return SliceAlong(Bordered(piece, dim, size, builder), dim, from, size, builder);
}

Instruction* WithOwnPartOf(Instruction* update, Instruction* local, const Sharding& sharding, const Shape& global,
                           const std::vector<int64_t>& cut, std::vector<Instruction*> starts, Context& context) {
  Builder& builder = context.builder();
  const int64_t rank = global.rank();
  DimVector sizes = update->shape().dims(), own(rank, 0), own_end = sizes;
  std::vector<Instruction*> places(rank, builder.Index(0));  // of the update, in the block with its border
  std::vector<hlo::PadDim> border(rank);
  for (int64_t d : cut) {
    const int64_t part = update->shape().dim(d);
    const Block block = BlockFor(starts[d], part, sharding, global, d, context);
    starts[d] = block.start;
    places[d] = builder.Binary(Opcode::kSubtract, builder.Index(part), block.shift);
    border[d].low = border[d].high = part;
    sizes[d] = block.size;
    own[d] = part;
    own_end[d] = part + block.size;
  }
  // What of the update is not in the block goes to the border.
  Instruction* block = builder.DynamicSlice(local, starts, sizes);
  block = builder.Pad(block, builder.Constant(Literal(Shape::Scalar(local->shape().dtype()))), std::move(border));
  block = builder.Slice(builder.DynamicUpdateSlice(block, update, std::move(places)), own, own_end);
  return builder.DynamicUpdateSlice(local, block, std::move(starts));
}

}  // namespace gangway::partition
