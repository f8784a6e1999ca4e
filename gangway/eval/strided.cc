#include "gangway/eval/strided.h"

#include <cstring>

namespace gangway::eval {
namespace {

template <int kWidth>
void Copy(absl::Span<const int64_t> dims, const char* source, const StridedSide& source_side, char* target,
          const StridedSide& target_side) {
  int64_t last = dims.back(), source_step = source_side.strides.back(), target_step = target_side.strides.back();
  DimVector outer(dims.begin(), dims.end() - 1), index(outer.size(), 0);
  do {
    const char* s = source + (source_side.from + Offset(index, source_side.strides)) * kWidth;
    char* t = target + (target_side.from + Offset(index, target_side.strides)) * kWidth;
    if (source_step == 1 && target_step == 1) {
      std::memcpy(t, s, last * kWidth);
      continue;
    }
    for (int64_t k = 0; k < last; ++k) std::memcpy(t + k * target_step * kWidth, s + k * source_step * kWidth, kWidth);
  } while (Next(outer, &index));
}

}  // namespace

void CopyStrided(absl::Span<const int64_t> dims, int width, const char* source, const StridedSide& source_side,
                 char* target, const StridedSide& target_side) {
  if (CountOf(dims) == 0) return;
  if (dims.empty()) {
    std::memcpy(target + target_side.from * width, source + source_side.from * width, width);
    return;
  }
  switch (width) {
    case 1:
      return Copy<1>(dims, source, source_side, target, target_side);
    case 2:
      return Copy<2>(dims, source, source_side, target, target_side);
    case 4:
      return Copy<4>(dims, source, source_side, target, target_side);
    case 8:
      return Copy<8>(dims, source, source_side, target, target_side);
    default:
      return Copy<16>(dims, source, source_side, target, target_side);
  }
}

}  // namespace gangway::eval
