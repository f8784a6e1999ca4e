#include "gangway/worker/box.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gangway::worker {
namespace {

// From `dim` on one stretch of memory in both arrays: the inner dimensions are taken whole.
bool IsStretch(const net::Dims& source, const net::Dims& target, const net::Dims& extent, size_t dim) {
  for (size_t d = dim + 1; d < extent.size(); ++d) {
    if (extent[d] != source[d] || extent[d] != target[d]) return false;
  }
  return true;
}

int64_t Product(const net::Dims& dims, size_t first) {
  int64_t product = 1;
  for (size_t d = first; d < dims.size(); ++d) product *= dims[d];
  return product;
}

}  // namespace

absl::Status CheckBox(const net::Dims& dims, const net::Dims& start, const net::Dims& extent) {
  bool inside = start.size() == dims.size() && extent.size() == dims.size();
  for (size_t d = 0; inside && d < dims.size(); ++d) {
    inside = start[d] >= 0 && extent[d] >= 0 && extent[d] <= dims[d] && start[d] <= dims[d] - extent[d];
  }
  if (inside) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no box [", absl::StrJoin(extent, ","), "] at [",
                                                 absl::StrJoin(start, ","), "] of an array [", absl::StrJoin(dims, ","),
                                                 "]"));
}

void CopyBox(const std::byte* from, BoxPlace source, std::byte* to, BoxPlace target, const net::Dims& extent,
             int64_t width) {
  if (Product(extent, 0) == 0) return;
  if (extent.empty()) return (void)std::memcpy(to, from, width);
  // The outermost dimension below which both lie in one stretch; above it, one copy for each index.
  size_t split = 0;
  while (!IsStretch(source.dims, target.dims, extent, split)) ++split;
  const int64_t stretch = Product(extent, split) * width;
  net::Dims index(split, 0);
  while (true) {
    int64_t at_source = 0, at_target = 0;
    for (size_t d = 0; d < extent.size(); ++d) {
      const int64_t i = d < split ? index[d] : 0;
      at_source = at_source * source.dims[d] + source.start[d] + i;
      at_target = at_target * target.dims[d] + target.start[d] + i;
    }
    std::memcpy(to + at_target * width, from + at_source * width, stretch);
    size_t d = split;
    while (d > 0 && ++index[d - 1] == extent[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace gangway::worker
