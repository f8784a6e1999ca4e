// Arrays in one of four wide number types, so that an operation is written once and not once per element type.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gangway/tensor/literal.h"

namespace gangway::eval {

using Complex = std::complex<double>;

// pred and unsigned are uint64_t, signed int64_t, floats double, complex Complex. A narrow float loses nothing in a
// double, and the results of + - * / and sqrt rounded from double are those of the narrow type.
template <typename W>
std::vector<W> Widen(const Literal& array);

// Elements of `dtype`; integers wrap, floats round to nearest even, pred is 0 or 1.
template <typename W>
void Narrow(DType dtype, absl::Span<const W> values, char* out);

template <typename W>
Literal NarrowTo(const Shape& shape, const std::vector<W>& values) {
  Literal literal(WithoutLayout(shape));
  Narrow<W>(shape.dtype(), values, literal.data());
  return literal;
}

// Calls function.operator()<W>() with the wide type of `dtype`.
template <typename F>
auto WithWideType(DType dtype, F&& function) {
  switch (KindOf(dtype)) {
    case DTypeKind::kSigned:
      return function.template operator()<int64_t>();
    case DTypeKind::kFloat:
      return function.template operator()<double>();
    case DTypeKind::kComplex:
      return function.template operator()<Complex>();
    default:
      return function.template operator()<uint64_t>();
  }
}

}  // namespace gangway::eval
