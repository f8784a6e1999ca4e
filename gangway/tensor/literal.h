// A value: an array with its elements in row-major order, or a tuple of values.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/tensor/shape.h"

namespace gangway {

// Owns its bytes; copying copies them (share constants through shared_ptr<const Literal>). Elements take
// ByteWidth(dtype) bytes, sub-byte types one byte an element (value in the low bits, sign-extended for signed types),
// complex as real then imaginary.
class Literal {
 public:
  Literal() = default;
  // All elements zero (all bits zero).
  explicit Literal(Shape shape);
  Literal(Shape shape, std::vector<char> bytes);  // bytes.size() must be shape.ByteSize()
  static Literal Tuple(std::vector<Literal> elements);

  template <typename T>
  static Literal Scalar(DType dtype, T value) {
    Literal literal(Shape::Scalar(dtype));
    std::memcpy(literal.bytes_.data(), &value, sizeof(T));
    return literal;
  }
  template <typename T>
  static Literal FromSpan(DType dtype, DimVector dims, absl::Span<const T> values) {
    Literal literal(Shape(dtype, std::move(dims)));
    std::memcpy(literal.bytes_.data(), values.data(), values.size() * sizeof(T));
    return literal;
  }

  const Shape& shape() const { return shape_; }
  absl::Span<const char> bytes() const { return bytes_; }
  char* data() { return bytes_.data(); }
  const char* data() const { return bytes_.data(); }
  std::vector<Literal>& elements() { return elements_; }
  const std::vector<Literal>& elements() const { return elements_; }

  // Typed view of the elements; T's size must be ByteWidth(dtype).
  template <typename T>
  absl::Span<const T> values() const {
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <typename T>
  absl::Span<T> mutable_values() {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

  // Every element has the same bits; false for empty arrays and tuples.
  bool IsSplat() const;

  friend bool operator==(const Literal&, const Literal&) = default;  // bit for bit

 private:
  Shape shape_;
  std::vector<char> bytes_;
  std::vector<Literal> elements_;
};

// One element read as / written from a wide type; the conversion is that of the element type: floats round to nearest
// even, a float becomes the nearest integer toward zero (the nearest end when outside, 0 for NaN). For printing,
// parsing, constants and tests, not for bulk arithmetic.
double ElementAsDouble(DType dtype, const char* element);    // real part of complex types
double ImaginaryAsDouble(DType dtype, const char* element);  // 0 unless complex
int64_t ElementAsInt64(DType dtype, const char* element);    // integers and pred; u64 wraps
void StoreDouble(DType dtype, double value, char* element);  // any type; imaginary part becomes 0
void StoreComplex(DType dtype, double real, double imaginary, char* element);
void StoreInt64(DType dtype, int64_t value, char* element);  // integers wrap, floats convert

// A literal of one repeated number.
Literal SplatLiteral(const Shape& shape, double value);

}  // namespace gangway
