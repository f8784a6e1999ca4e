#include "gangway/collective/move.h"

#include <algorithm>
#include <cstring>

#include "absl/container/inlined_vector.h"

namespace gangway::collective {
namespace {

int ReadBits(const void* packed, int64_t index, int bits) {
  const int64_t bit = index * bits;
  return (static_cast<const uint8_t*>(packed)[bit / 8] >> (bit % 8)) & ((1 << bits) - 1);
}

void WriteBits(void* packed, int64_t index, int bits, int value) {
  const int64_t bit = index * bits;
  uint8_t& byte = static_cast<uint8_t*>(packed)[bit / 8];
  const int mask = ((1 << bits) - 1) << (bit % 8);
  byte = static_cast<uint8_t>((byte & ~mask) | ((value << (bit % 8)) & mask));
}

}  // namespace

int StorageBits(DType dtype) {
  const int bits = BitWidth(dtype);
  // Only powers of two are packed; pred and the 6-bit floats take a byte.
  return (dtype == DType::kPred || bits == 6) ? 8 : bits;
}

int64_t PackedBytes(DType dtype, int64_t elements) { return (elements * StorageBits(dtype) + 7) / 8; }

int64_t ElementCount(const Array& array) {
  int64_t count = 1;
  for (int64_t dim : array.dims) count *= dim;
  return count;
}

void CopyRun(DType dtype, void* target, int64_t to, const void* source, int64_t from, int64_t count) {
  const int bits = StorageBits(dtype);
  if (to * bits % 8 == 0 && from * bits % 8 == 0 && count * bits % 8 == 0) {
    std::memcpy(static_cast<char*>(target) + to * bits / 8, static_cast<const char*>(source) + from * bits / 8,
                count * bits / 8);
    return;
  }
  for (int64_t i = 0; i < count; ++i) WriteBits(target, to + i, bits, ReadBits(source, from + i, bits));
}

void CopyBlock(const Array& target, absl::Span<const int64_t> to, const Array& source, absl::Span<const int64_t> from,
               absl::Span<const int64_t> extent) {
  const int rank = static_cast<int>(extent.size());
  absl::InlinedVector<int64_t, 6> target_stride(rank + 1, 1), source_stride(rank + 1, 1);
  int64_t target_at = 0, source_at = 0;
  for (int d = rank - 1; d >= 0; --d) {
    if (extent[d] == 0) return;
    target_stride[d] = target_stride[d + 1] * target.dims[d];
    source_stride[d] = source_stride[d + 1] * source.dims[d];
    target_at += to[d] * target_stride[d + 1];
    source_at += from[d] * source_stride[d + 1];
  }
  // Everything from dimension `outer` inwards is one run in both arrays.
  int outer = rank;
  int64_t run = 1;
  while (outer > 0) {
    run *= extent[--outer];
    if (extent[outer] != target.dims[outer] || extent[outer] != source.dims[outer]) break;
  }
  absl::InlinedVector<int64_t, 6> index(outer, 0);
  while (true) {
    CopyRun(target.dtype, target.data, target_at, source.data, source_at, run);
    int d = outer - 1;
    for (; d >= 0; --d) {
      target_at += target_stride[d + 1];
      source_at += source_stride[d + 1];
      if (++index[d] < extent[d]) break;
      target_at -= extent[d] * target_stride[d + 1];
      source_at -= extent[d] * source_stride[d + 1];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

void Unpack(DType dtype, void* bytes, const void* packed, int64_t from, int64_t count) {
  const int bits = StorageBits(dtype);
  const int spare = IsSigned(dtype) ? 8 - bits : 0;
  for (int64_t i = 0; i < count; ++i) {
    const int value = ReadBits(packed, from + i, bits);
    static_cast<int8_t*>(bytes)[i] = static_cast<int8_t>(static_cast<int8_t>(value << spare) >> spare);
  }
}

void Pack(DType dtype, void* packed, int64_t to, const void* bytes, int64_t count) {
  const int bits = StorageBits(dtype);
  for (int64_t i = 0; i < count; ++i) WriteBits(packed, to + i, bits, static_cast<const uint8_t*>(bytes)[i]);
}

}  // namespace gangway::collective
