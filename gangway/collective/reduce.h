// Elementwise reduction of arrays in memory: the arithmetic of all-reduce and reduce-scatter.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gangway/collective/op.h"
#include "gangway/tensor/dtype.h"

namespace gangway::collective {

// INVALID_ARGUMENT where the type has no such reduction: and/or/xor of floats and complex, min/max of complex.
absl::Status CheckReduction(DType dtype, Reduction reduction);

// out[i] = in[0][i] (op) in[1][i] (op) ... in that order, `count` elements. Dense, one element per ByteWidth bytes.
// `out` overlaps no input. Types narrower than 32 bits are accumulated in f32 and rounded once; integers wrap. The pair
// must have passed CheckReduction.
void Reduce(DType dtype, Reduction reduction, void* out, absl::Span<const void* const> in, int64_t count);

// What partial results of `dtype` are kept in until the last one is in: f32 for floats narrower than that.
DType AccumulatorOf(DType dtype);
// The same as Reduce, but `out` holds elements of AccumulatorOf(dtype), not rounded.
void ReducePartly(DType dtype, Reduction reduction, void* out, absl::Span<const void* const> in, int64_t count);
// Rounds `count` elements of AccumulatorOf(dtype) to `dtype`, one per ByteWidth bytes.
void RoundTo(DType dtype, void* out, const void* in, int64_t count);

}  // namespace gangway::collective
