// Lists of dimensions, as attributes have them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gangway/tensor/shape.h"

namespace gangway::passes {

// Where `dim` stands in the list; -1 when it does not.
inline int64_t PositionOf(int64_t dim, const DimVector& dims) {
  const auto at = std::find(dims.begin(), dims.end(), dim);
  return at == dims.end() ? -1 : at - dims.begin();
}

}  // namespace gangway::passes
