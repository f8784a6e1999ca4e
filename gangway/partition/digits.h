// The common number system of two shardings of one array: every dimension is written in mixed radix so that each mesh
// axis (or part of one) that splits it, before or after, is exactly one digit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gangway/mesh/sharding.h"
#include "gangway/tensor/shape.h"

namespace gangway::partition {

// One digit of one dimension's index, major to minor. What is left of the dimension after its digits is the tile.
struct Digit {
  int dim = 0;
  int64_t size = 1;
  friend bool operator==(const Digit&, const Digit&) = default;
};

// Which axis part (index into DigitView::atoms) holds each digit; kLocal when every device has all its values.
using Holders = std::vector<int8_t>;
inline constexpr int8_t kLocal = -1;

// A value. Example on {x:4,y:2}: from ('x','y'), [] to ('y','x'), []: digits of dim 0 are 2,2,2, held before by x:(1)2,
// x:(2)2, y and afterwards by y, x:(1)2, x:(2)2.
struct DigitView {
  MeshRef mesh;
  AxisList atoms;             // every axis part either sharding names, in mesh order
  std::vector<Digit> digits;  // dimension by dimension, major to minor
  DimVector padded;           // extents the digits divide; at least those of the array
  Holders from, to;
  uint32_t unreduced_from = 0;  // bit per atom
  uint32_t unreduced_to = 0;

  // Elements of dimension `dim` below its digits.
  int64_t TileExtent(int64_t dim) const;
  AxisList AxesOf(const std::vector<int>& atom_list) const;
};

struct DigitResult {
  DigitView view;
  // Dimensions whose two tilings have no common digits (sizes that do not divide, uneven tiles that do not nest). When
  // not empty, `view` is unset: these dimensions must be made local first.
  std::vector<int64_t> incompatible;
};

// Both shardings over the same mesh, axes that are manual left alone.
DigitResult CommonDigits(const Sharding& from, const Sharding& to, const Shape& shape);

}  // namespace gangway::partition
