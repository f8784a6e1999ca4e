// Elements and types of an artifact as ours: shapes, literals, lists of integers.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/stablehlo/bytecode/entries.h"
#include "gangway/tensor/literal.h"
#include "gangway/tensor/shape.h"

namespace gangway::stablehlo {

// Unimplemented for types we have no element for (tf32, index).
absl::StatusOr<DType> ElementType(const bytecode::Entries& entries, bytecode::TypeId type);

// The shape of a value: tensor, tuple, token, buffer, or a future's content. Unimplemented for dynamic dimensions,
// quantized types and the like; InvalidArgument for absurd ones (more than 4096 leaves, nested deeper than 64).
absl::StatusOr<Shape> ShapeOfType(const bytecode::Entries& entries, bytecode::TypeId type);

// Dense elements. Where all are equal (and there are several) `is_splat` is set and the literal is the one scalar, so
// that its size is never more than a small multiple of the file's bytes.
struct DenseLiteral {
  Literal literal;
  Shape shape;  // of the whole
  bool is_splat = false;
};
absl::StatusOr<DenseLiteral> ReadLiteral(const bytecode::Entries& entries, const bytecode::DenseAttr& dense);

// A small tensor of integers or bools (dimension lists, replica groups), splats expanded to at most 1024 elements.
struct IntegerTensor {
  DimVector dims;
  DimVector values;
};
absl::StatusOr<IntegerTensor> ReadIntegers(const bytecode::Entries& entries, const bytecode::DenseAttr& dense);

}  // namespace gangway::stablehlo
