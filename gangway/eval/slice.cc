// slice, dynamic-slice, dynamic-update-slice, pad, concatenate.
#include <algorithm>

#include "gangway/eval/op_table.h"
#include "gangway/eval/strided.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

// A block of the operand, every `steps[i]`-th element from `starts`.
Value ReadBlock(const Literal& x, const DimVector& starts, const DimVector& steps, const Shape& shape) {
  DimVector strides = Strides(x.shape().dims());
  StridedSide side{Offset(starts, strides), strides};
  for (size_t i = 0; i < steps.size(); ++i) side.strides[i] *= steps[i];
  Literal result(WithoutLayout(shape));
  CopyStrided(shape.dims(), ByteWidth(shape.dtype()), x.data(), side, result.data(), {0, Strides(shape.dims())});
  return Value(std::move(result));
}

// Starts from scalar operands, moved so that the block lies inside.
DimVector ClampedStarts(const Call& call, int64_t first_operand, const Shape& of, const DimVector& sizes) {
  DimVector starts;
  for (int64_t i = 0; i < of.rank(); ++i) {
    const Literal& start = call.array(first_operand + i);
    int64_t value = ElementAsInt64(start.shape().dtype(), start.data());
    if (start.shape().dtype() == DType::kU64 && value < 0) value = std::numeric_limits<int64_t>::max();
    starts.push_back(std::clamp<int64_t>(value, 0, of.dim(i) - sizes[i]));
  }
  return starts;
}

absl::StatusOr<Value> Slice(const Call& call) {
  const auto& attr = call.attr<hlo::SliceAttr>();
  DimVector steps = attr.strides.empty() ? DimVector(attr.starts.size(), 1) : attr.strides;
  return ReadBlock(call.array(0), attr.starts, steps, call.shape());
}

absl::StatusOr<Value> DynamicSlice(const Call& call) {
  const DimVector& sizes = call.attr<hlo::DynamicSliceAttr>().sizes;
  DimVector starts = ClampedStarts(call, 1, call.array(0).shape(), sizes);
  return ReadBlock(call.array(0), starts, DimVector(sizes.size(), 1), call.shape());
}

absl::StatusOr<Value> DynamicUpdateSlice(const Call& call) {
  const Literal& update = call.array(1);
  Literal result = call.array(0);
  const DimVector& sizes = update.shape().dims();
  DimVector strides = Strides(result.shape().dims());
  DimVector starts = ClampedStarts(call, 2, result.shape(), sizes);
  CopyStrided(sizes, ByteWidth(update.shape().dtype()), update.data(), {0, Strides(sizes)}, result.data(),
              {Offset(starts, strides), strides});
  return Value(std::move(result));
}

Literal Filled(const Shape& shape, const Literal& scalar) {
  Literal result(WithoutLayout(shape));
  size_t width = scalar.bytes().size();
  for (size_t i = 0; i < result.bytes().size(); i += width) std::memcpy(result.data() + i, scalar.data(), width);
  return result;
}

absl::StatusOr<Value> Pad(const Call& call) {
  const Literal& x = call.array(0);
  Literal result = Filled(call.shape(), call.array(1));
  DimVector from_strides = Strides(x.shape().dims()), to_strides = Strides(call.shape().dims());
  StridedSide from{0, from_strides}, to{0, to_strides};
  DimVector block;  // the operand's elements that stay: [first, last] along each dimension
  for (int64_t i = 0; i < x.shape().rank(); ++i) {
    const hlo::PadDim& pad = call.attr<hlo::PadAttr>().dims[i];
    int64_t step = pad.interior + 1;
    int64_t first = pad.low >= 0 ? 0 : (-pad.low + step - 1) / step;
    int64_t room = call.shape().dim(i) - 1 - pad.low;  // element k lands inside when k * step <= room
    int64_t last = room < 0 ? -1 : std::min(x.shape().dim(i) - 1, room / step);
    block.push_back(std::max<int64_t>(0, last - first + 1));
    from.from += first * from_strides[i];
    to.from += (pad.low + first * step) * to_strides[i];
    to.strides[i] *= step;
  }
  CopyStrided(block, ByteWidth(x.shape().dtype()), x.data(), from, result.data(), to);
  return Value(std::move(result));
}

absl::StatusOr<Value> Concatenate(const Call& call) {
  int64_t dim = call.attr<hlo::DimensionsAttr>().dims.front();
  Literal result(WithoutLayout(call.shape()));
  DimVector strides = Strides(call.shape().dims());
  int64_t at = 0;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Literal& part = call.array(i);
    const DimVector& dims = part.shape().dims();
    CopyStrided(dims, ByteWidth(part.shape().dtype()), part.data(), {0, Strides(dims)}, result.data(),
                {at * strides[dim], strides});
    at += dims[dim];
  }
  return Value(std::move(result));
}

}  // namespace

void AddSlice(OpTable* table) {
  table->Set(Opcode::kSlice, Slice);
  table->Set(Opcode::kDynamicSlice, DynamicSlice);
  table->Set(Opcode::kDynamicUpdateSlice, DynamicUpdateSlice);
  table->Set(Opcode::kPad, Pad);
  table->Set(Opcode::kConcatenate, Concatenate);
}

}  // namespace gangway::eval
