// The type of a value: an array of elements, a tuple, a token or an opaque value, with an optional layout.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/tensor/dtype.h"

namespace gangway {

using DimVector = std::vector<int64_t>;

// Physical order of an array's dimensions, as in HLO text `{1,0:T(8,128)S(5)}`.
struct Layout {
  DimVector minor_to_major;
  std::string suffix;  // what follows ':' verbatim (tiles, memory space, element size); empty for plain layouts

  friend bool operator==(const Layout&, const Layout&) = default;
  std::string ToString() const;  // "{1,0}"
};

// A value type; no invariants beyond those the named constructors and ValidateShape check.
class Shape {
 public:
  Shape() = default;
  Shape(DType dtype, DimVector dims) : dtype_(dtype), dims_(std::move(dims)) {}
  Shape(DType dtype, std::initializer_list<int64_t> dims) : dtype_(dtype), dims_(dims) {}
  static Shape Scalar(DType dtype) { return Shape(dtype, DimVector{}); }
  static Shape Tuple(std::vector<Shape> elements);
  static Shape Token() { return Shape(DType::kToken, DimVector{}); }
  static Shape Opaque() { return Shape(DType::kOpaque, DimVector{}); }

  DType dtype() const { return dtype_; }
  bool IsArray() const { return IsElement(dtype_); }
  bool IsTuple() const { return dtype_ == DType::kTuple; }
  bool IsToken() const { return dtype_ == DType::kToken; }

  // Arrays only; empty otherwise.
  const DimVector& dims() const { return dims_; }
  int64_t dim(int64_t i) const { return dims_[i]; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  void set_dim(int64_t i, int64_t extent) { dims_[i] = extent; }
  void set_dtype(DType dtype) { dtype_ = dtype; }
  // Bounded dynamic dimensions (`f32[<=8]`); empty when all are static.
  const std::vector<bool>& dynamic_dims() const { return dynamic_dims_; }
  void set_dynamic_dims(std::vector<bool> dynamic) { dynamic_dims_ = std::move(dynamic); }

  const std::optional<Layout>& layout() const { return layout_; }
  void set_layout(std::optional<Layout> layout) { layout_ = std::move(layout); }

  // Tuples only; empty otherwise.
  const std::vector<Shape>& tuple() const { return tuple_; }
  std::vector<Shape>& mutable_tuple() { return tuple_; }

  // Product of the dimensions; 1 for a scalar, 0 for what is no array. Callers bound shapes with ValidateShape first.
  int64_t ElementCount() const;
  // Bytes in row-major memory (ByteWidth an element); tuples sum over their elements.
  int64_t ByteSize() const;

  // `f32[2,3]`, `(f32[], s32[4])`; with_layout adds `{1,0}`.
  std::string ToString(bool with_layout = false) const;

  // Same types, layouts ignored at every level.
  static bool Compatible(const Shape& a, const Shape& b);
  friend bool operator==(const Shape&, const Shape&) = default;  // layouts included

  template <typename H>
  friend H AbslHashValue(H h, const Shape& s) {
    return H::combine(std::move(h), static_cast<int>(s.dtype_), s.dims_, s.tuple_);
  }

 private:
  DType dtype_ = DType::kInvalid;
  DimVector dims_;
  std::vector<bool> dynamic_dims_;
  std::optional<Layout> layout_;
  std::vector<Shape> tuple_;
};

// The arrays and tokens of a shape in depth-first order: the leaves of a tuple, or the shape itself. `()` has none.
std::vector<Shape> Leaves(const Shape& shape);
int64_t LeafCount(const Shape& shape);

Layout RowMajorLayout(int64_t rank);
// The shape with row-major layouts on every array.
Shape WithRowMajorLayout(Shape shape);
Shape WithoutLayout(Shape shape);
inline Shape WithDType(Shape shape, DType dtype) {
  shape.set_dtype(dtype);
  return shape;
}

// Rank at most 256, dimensions not negative, byte size below 2^62 (zeros counted as ones), layout a permutation,
// nesting at most 64.
absl::Status ValidateShape(const Shape& shape);

// Reads one shape from the front of `*text`, which then holds the rest.
absl::StatusOr<Shape> ConsumeShape(absl::string_view* text);
absl::StatusOr<Shape> ParseShape(absl::string_view text);

}  // namespace gangway
