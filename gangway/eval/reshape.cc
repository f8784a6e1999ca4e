// reshape, bitcast, bitcast-convert, broadcast, transpose, reverse, iota: no arithmetic on elements.
#include "absl/strings/str_cat.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/strided.h"
#include "gangway/eval/wide.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

Literal WithBytesOf(const Shape& shape, const Literal& from) {
  return Literal(WithoutLayout(shape), std::vector<char>(from.bytes().begin(), from.bytes().end()));
}

absl::StatusOr<Value> Reshape(const Call& call) { return Value(WithBytesOf(call.shape(), call.array(0))); }

// Elements one after the other as bits, low bits first: what lies in memory when sub-byte elements are packed.
std::vector<bool> BitsOf(const Literal& array) {
  int width = BitWidth(array.shape().dtype()), bytes = ByteWidth(array.shape().dtype());
  std::vector<bool> bits;
  for (size_t i = 0; i < array.bytes().size(); i += bytes) {
    for (int b = 0; b < width; ++b) bits.push_back((array.bytes()[i + b / 8] >> (b % 8)) & 1);
  }
  return bits;
}

absl::StatusOr<Value> BitcastConvert(const Call& call) {
  const Literal& x = call.array(0);
  DType from = x.shape().dtype(), to = call.shape().dtype();
  if (BitWidth(from) % 8 == 0 && BitWidth(to) % 8 == 0) {
    if (x.shape().ByteSize() != call.shape().ByteSize()) return absl::InvalidArgumentError("sizes in bytes differ");
    return Value(WithBytesOf(call.shape(), x));
  }
  std::vector<bool> bits = BitsOf(x);
  Literal result(WithoutLayout(call.shape()));
  int width = BitWidth(to);
  if (static_cast<int64_t>(bits.size()) != call.shape().ElementCount() * width) {
    return absl::InvalidArgumentError("sizes in bits differ");
  }
  size_t at = 0;
  for (size_t i = 0; i < result.bytes().size(); i += ByteWidth(to)) {
    uint64_t code = 0;
    for (int b = 0; b < width; ++b) code |= static_cast<uint64_t>(bits[at++]) << b;
    std::memcpy(result.data() + i, &code, ByteWidth(to));
    if (IsInteger(to)) StoreInt64(to, static_cast<int64_t>(code), result.data() + i);  // sign-extended in its byte
  }
  return Value(std::move(result));
}

absl::StatusOr<Value> Bitcast(const Call& call) {
  if (call.array(0).shape().dtype() != call.shape().dtype()) return BitcastConvert(call);
  return Reshape(call);
}

// The operand read with the given strides over the result's dimensions.
Value ReadStrided(const Call& call, StridedSide side) {
  const Literal& x = call.array(0);
  Literal result(WithoutLayout(call.shape()));
  const DimVector& dims = call.shape().dims();
  CopyStrided(dims, ByteWidth(x.shape().dtype()), x.data(), side, result.data(), {0, Strides(dims)});
  return Value(std::move(result));
}

absl::StatusOr<Value> Broadcast(const Call& call) {
  DimVector operand_strides = Strides(call.array(0).shape().dims());
  const DimVector& dims = call.attr<hlo::DimensionsAttr>().dims;
  StridedSide side{0, DimVector(call.shape().rank(), 0)};
  for (size_t i = 0; i < dims.size(); ++i) {
    // An extent of one may stretch, as in StableHLO.
    if (call.array(0).shape().dim(i) != 1) side.strides[dims[i]] = operand_strides[i];
  }
  return ReadStrided(call, std::move(side));
}

absl::StatusOr<Value> Transpose(const Call& call) {
  DimVector operand_strides = Strides(call.array(0).shape().dims());
  StridedSide side;
  for (int64_t dim : call.attr<hlo::DimensionsAttr>().dims) side.strides.push_back(operand_strides[dim]);
  return ReadStrided(call, std::move(side));
}

absl::StatusOr<Value> Reverse(const Call& call) {
  const DimVector& dims = call.shape().dims();
  StridedSide side{0, Strides(dims)};
  if (call.shape().ElementCount() > 0) {
    for (int64_t dim : call.attr<hlo::DimensionsAttr>().dims) {
      side.from += (dims[dim] - 1) * side.strides[dim];
      side.strides[dim] = -side.strides[dim];
    }
  }
  return ReadStrided(call, std::move(side));
}

absl::StatusOr<Value> Iota(const Call& call) {
  const DimVector& dims = call.shape().dims();
  int64_t dim = call.attr<hlo::DimensionsAttr>().dims.front();
  int64_t inner = Strides(dims)[dim], extent = dims[dim];
  return WithWideType(call.shape().dtype(), [&]<typename W>() {
    std::vector<W> values(call.shape().ElementCount());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<W>(static_cast<int64_t>(i) / inner % extent);
    return Value(NarrowTo<W>(call.shape(), values));
  });
}

}  // namespace

void AddReshape(OpTable* table) {
  table->Set(Opcode::kReshape, Reshape);
  table->Set(Opcode::kDynamicReshape, Reshape);
  table->Set(Opcode::kBitcast, Bitcast);
  table->Set(Opcode::kBitcastConvert, BitcastConvert);
  table->Set(Opcode::kBroadcast, Broadcast);
  table->Set(Opcode::kTranspose, Transpose);
  table->Set(Opcode::kReverse, Reverse);
  table->Set(Opcode::kIota, Iota);
}

}  // namespace gangway::eval
