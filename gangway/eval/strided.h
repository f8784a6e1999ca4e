// Row-major index arithmetic and copies between arrays of different layout of indices. Internal to eval.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gangway/tensor/shape.h"

namespace gangway::eval {

// Elements between neighbours along each dimension.
inline DimVector Strides(absl::Span<const int64_t> dims) {
  DimVector strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

inline int64_t CountOf(absl::Span<const int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

// Steps an index through `dims` in row-major order; false after the last one.
inline bool Next(absl::Span<const int64_t> dims, DimVector* index) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (++(*index)[i] < dims[i]) return true;
    (*index)[i] = 0;
  }
  return false;
}

// Linear offset of an index.
inline int64_t Offset(absl::Span<const int64_t> index, absl::Span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

// Calls visit(i, from + index . strides) for every index of `dims` in row-major order, i counting up.
template <typename F>
void ForEach(absl::Span<const int64_t> dims, int64_t from, absl::Span<const int64_t> strides, F&& visit) {
  int64_t count = CountOf(dims);
  if (count == 0) return;
  if (dims.empty()) return visit(0, from);
  int64_t last = dims.back(), last_stride = strides[dims.size() - 1];
  DimVector index(dims.size() - 1, 0);
  absl::Span<const int64_t> outer = dims.subspan(0, dims.size() - 1);
  for (int64_t i = 0; i < count;) {
    int64_t offset = from + Offset(index, strides.subspan(0, outer.size()));
    for (int64_t k = 0; k < last; ++k) visit(i++, offset + k * last_stride);
    Next(outer, &index);
  }
}

// One block of elements of `width` bytes: element `index` of the block is at from + index . strides of each side
// (in elements).
struct StridedSide {
  int64_t from = 0;
  DimVector strides;
};
void CopyStrided(absl::Span<const int64_t> dims, int width, const char* source, const StridedSide& source_side,
                 char* target, const StridedSide& target_side);

}  // namespace gangway::eval
