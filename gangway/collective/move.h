// Copies between arrays in memory without reordering elements: runs, strided blocks, and packed sub-byte elements.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "gangway/collective/array.h"

namespace gangway::collective {

int64_t ElementCount(const Array& array);
// Bytes in memory, sub-byte types packed.
int64_t PackedBytes(DType dtype, int64_t elements);
// Bits an element takes in memory: 8 for pred, 4 for s4, 32 for f32.
int StorageBits(DType dtype);

// `count` elements from element `from` of `source` to element `to` of `target`; they do not overlap.
void CopyRun(DType dtype, void* target, int64_t to, const void* source, int64_t from, int64_t count);

// The block of `extent` at `from` in the source array to the block at `to` in the target array, same rank.
void CopyBlock(const Array& target, absl::Span<const int64_t> to, const Array& source, absl::Span<const int64_t> from,
               absl::Span<const int64_t> extent);

// Sub-byte elements to and from one byte each, signed ones sign-extended.
void Unpack(DType dtype, void* bytes, const void* packed, int64_t from, int64_t count);
void Pack(DType dtype, void* packed, int64_t to, const void* bytes, int64_t count);

}  // namespace gangway::collective
