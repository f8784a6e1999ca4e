#include "gangway/stablehlo/elements.h"

#include <cstring>
#include <utility>

#include "gangway/base/status.h"

namespace gangway::stablehlo {
namespace {

using bytecode::Entries;
using bytecode::Scalar;
using bytecode::TypeId;

constexpr int kMaxTypeDepth = 64;
constexpr int64_t kMaxLeaves = 4096;
constexpr int64_t kMaxSplatIntegers = 1024;

DType DTypeOf(Scalar scalar) {
  switch (scalar) {
    case Scalar::kBool:
      return DType::kPred;
    case Scalar::kS2:
      return DType::kS2;
    case Scalar::kS4:
      return DType::kS4;
    case Scalar::kS8:
      return DType::kS8;
    case Scalar::kS16:
      return DType::kS16;
    case Scalar::kS32:
      return DType::kS32;
    case Scalar::kS64:
      return DType::kS64;
    case Scalar::kU2:
      return DType::kU2;
    case Scalar::kU4:
      return DType::kU4;
    case Scalar::kU8:
      return DType::kU8;
    case Scalar::kU16:
      return DType::kU16;
    case Scalar::kU32:
      return DType::kU32;
    case Scalar::kU64:
      return DType::kU64;
    case Scalar::kF4E2M1FN:
      return DType::kF4E2M1FN;
    case Scalar::kF6E2M3FN:
      return DType::kF6E2M3FN;
    case Scalar::kF6E3M2FN:
      return DType::kF6E3M2FN;
    case Scalar::kF8E5M2:
      return DType::kF8E5M2;
    case Scalar::kF8E4M3:
      return DType::kF8E4M3;
    case Scalar::kF8E4M3FN:
      return DType::kF8E4M3FN;
    case Scalar::kF8E5M2FNUZ:
      return DType::kF8E5M2FNUZ;
    case Scalar::kF8E4M3FNUZ:
      return DType::kF8E4M3FNUZ;
    case Scalar::kF8E4M3B11FNUZ:
      return DType::kF8E4M3B11FNUZ;
    case Scalar::kF8E3M4:
      return DType::kF8E3M4;
    case Scalar::kF8E8M0FNU:
      return DType::kF8E8M0FNU;
    case Scalar::kBF16:
      return DType::kBF16;
    case Scalar::kF16:
      return DType::kF16;
    case Scalar::kF32:
      return DType::kF32;
    case Scalar::kF64:
      return DType::kF64;
    case Scalar::kTF32:
    case Scalar::kIndex:
      return DType::kInvalid;
  }
  return DType::kInvalid;
}

absl::StatusOr<Shape> ArrayShape(const Entries& entries, TypeId element, const std::vector<int64_t>& dimensions) {
  GW_ASSIGN_OR_RETURN(DType dtype, ElementType(entries, element));
  for (int64_t extent : dimensions) {
    if (extent == bytecode::kDynamic) return absl::UnimplementedError("dynamic dimension in a tensor type");
  }
  Shape shape(dtype, dimensions);
  GW_RETURN_IF_ERROR(ValidateShape(shape));
  return shape;
}

// Depth first, with what is left of the leaf budget.
absl::StatusOr<Shape> ReadShape(const Entries& entries, TypeId id, int depth, int64_t& leaves);

absl::StatusOr<Shape> TupleShape(const Entries& entries, const std::vector<TypeId>& types, int depth, int64_t& leaves) {
  if (depth >= kMaxTypeDepth) return absl::InvalidArgumentError("tuple types nested too deep");
  std::vector<Shape> elements;
  for (TypeId type : types) {
    GW_ASSIGN_OR_RETURN(Shape element, ReadShape(entries, type, depth + 1, leaves));
    elements.push_back(std::move(element));
  }
  return Shape::Tuple(std::move(elements));
}

absl::StatusOr<Shape> ReadShape(const Entries& entries, TypeId id, int depth, int64_t& leaves) {
  if (--leaves < 0) return absl::InvalidArgumentError(absl::StrCat("tuple type with more than ", kMaxLeaves, " parts"));
  GW_ASSIGN_OR_RETURN(const bytecode::Type* type, entries.type(id));
  if (const auto* tensor = std::get_if<bytecode::TensorType>(type)) {
    return ArrayShape(entries, tensor->element, tensor->dimensions);
  }
  if (const auto* buffer = std::get_if<bytecode::BufferType>(type)) {
    return ArrayShape(entries, buffer->element, buffer->dimensions);
  }
  if (std::holds_alternative<bytecode::TokenType>(*type)) return Shape::Token();
  if (const auto* tuple = std::get_if<bytecode::TupleType>(type)) {
    return TupleShape(entries, tuple->elements, depth, leaves);
  }
  if (const auto* future = std::get_if<bytecode::FutureType>(type)) {
    if (future->types.size() == 1 && depth < kMaxTypeDepth)
      return ReadShape(entries, future->types[0], depth + 1, leaves);
    return TupleShape(entries, future->types, depth, leaves);
  }
  return absl::UnimplementedError(absl::StrCat("no value can have ", bytecode::TypeKind(*type), " as its type"));
}

void SignExtend(DType dtype, char* element) {
  const int bits = BitWidth(dtype);
  const uint8_t mask = static_cast<uint8_t>((1u << bits) - 1);
  uint8_t value = static_cast<uint8_t>(*element) & mask;
  if (IsSigned(dtype) && (value >> (bits - 1)) != 0) value |= static_cast<uint8_t>(~mask);
  *element = static_cast<char>(value);
}

// i1 comes packed, one bit an element, or one byte an element; a single byte may stand for all.
std::vector<char> UnpackBools(absl::string_view data, int64_t count) {
  std::vector<char> values(count);
  const bool packed = static_cast<int64_t>(data.size()) != count;
  for (int64_t i = 0; i < count; ++i) {
    values[i] = packed ? (static_cast<uint8_t>(data[i / 8]) >> (i % 8)) & 1 : data[i] != 0;
  }
  return values;
}

absl::Status WrongSize(absl::string_view data, const Shape& shape) {
  return absl::InvalidArgumentError(absl::StrCat(data.size(), " bytes of data for ", shape.ToString()));
}

absl::StatusOr<DenseLiteral> ReadBools(Shape shape, absl::string_view data) {
  DenseLiteral result{Literal(), std::move(shape), false};
  const int64_t count = result.shape.ElementCount();
  const int64_t size = static_cast<int64_t>(data.size());
  if (size == 1 && count != 0 && (count == 1 || count > 8 || data[0] == '\0' || data[0] == '\xFF')) {
    result.is_splat = count != 1;
    result.literal = Literal(result.is_splat ? Shape::Scalar(DType::kPred) : result.shape, {data[0] != 0});
    return result;
  }
  if (size != count && size != count / 8 + (count % 8 != 0)) return WrongSize(data, result.shape);
  result.literal = Literal(result.shape, UnpackBools(data, count));
  return result;
}

absl::StatusOr<DenseLiteral> ReadDense(Shape shape, absl::string_view data) {
  const DType dtype = shape.dtype();
  // A splat keeps its value also where there is no element that has it.
  if (shape.ElementCount() == 0 && static_cast<int64_t>(data.size()) == ByteWidth(dtype)) data = {};
  if (dtype == DType::kPred) return ReadBools(std::move(shape), data);
  DenseLiteral result{Literal(), std::move(shape), false};
  const int64_t width = ByteWidth(dtype);
  const int64_t count = result.shape.ElementCount();
  const int64_t size = static_cast<int64_t>(data.size());
  result.is_splat = count > 1 && size == width;
  if (!result.is_splat && size != count * width) return WrongSize(data, result.shape);
  std::vector<char> bytes(data.begin(), data.end());
  if (BitWidth(dtype) < 8) {
    for (char& element : bytes) SignExtend(dtype, &element);
  }
  result.literal = Literal(result.is_splat ? Shape::Scalar(dtype) : result.shape, std::move(bytes));
  return result;
}

}  // namespace

absl::StatusOr<DType> ElementType(const Entries& entries, TypeId type) {
  GW_ASSIGN_OR_RETURN(const bytecode::Type* found, entries.type(type));
  if (const auto* scalar = std::get_if<bytecode::ScalarType>(found)) {
    const DType dtype = DTypeOf(scalar->scalar);
    if (dtype != DType::kInvalid) return dtype;
  }
  if (const auto* complex = std::get_if<bytecode::ComplexType>(found)) {
    GW_ASSIGN_OR_RETURN(Scalar part, entries.scalar(complex->element));
    if (part == Scalar::kF32) return DType::kC64;
    if (part == Scalar::kF64) return DType::kC128;
  }
  return absl::UnimplementedError(absl::StrCat("tensors of ", bytecode::TypeKind(*found), " are not supported"));
}

absl::StatusOr<Shape> ShapeOfType(const Entries& entries, TypeId type) {
  int64_t leaves = kMaxLeaves;
  GW_ASSIGN_OR_RETURN(Shape shape, ReadShape(entries, type, 0, leaves));
  GW_RETURN_IF_ERROR(ValidateShape(shape));
  return shape;
}

absl::StatusOr<DenseLiteral> ReadLiteral(const Entries& entries, const bytecode::DenseAttr& dense) {
  GW_ASSIGN_OR_RETURN(Shape shape, ShapeOfType(entries, dense.type));
  if (!shape.IsArray()) return absl::InvalidArgumentError("dense elements of something that is no tensor");
  return ReadDense(std::move(shape), dense.data);
}

absl::StatusOr<IntegerTensor> ReadIntegers(const Entries& entries, const bytecode::DenseAttr& dense) {
  GW_ASSIGN_OR_RETURN(const bytecode::Type* type, entries.type(dense.type));
  const auto* tensor = std::get_if<bytecode::TensorType>(type);
  if (tensor == nullptr) return absl::InvalidArgumentError("dense elements of something that is no tensor");
  GW_ASSIGN_OR_RETURN(Scalar scalar, entries.scalar(tensor->element));
  // Layouts are tensors of index, which no value can have.
  const DType dtype = scalar == Scalar::kIndex ? DType::kS64 : DTypeOf(scalar);
  if (!IsInteger(dtype) && dtype != DType::kPred) {
    return absl::InvalidArgumentError(absl::StrCat("expected integers, found ", bytecode::ScalarName(scalar)));
  }
  const Shape shape(dtype, tensor->dimensions);
  GW_RETURN_IF_ERROR(ValidateShape(shape));
  GW_ASSIGN_OR_RETURN(DenseLiteral read, ReadDense(shape, dense.data));
  const int64_t count = shape.ElementCount();
  if (read.is_splat && count > kMaxSplatIntegers) {
    return absl::InvalidArgumentError(absl::StrCat("a list of ", count, " equal integers"));
  }
  IntegerTensor result{tensor->dimensions, {}};
  result.values.reserve(count);
  const int64_t stride = read.is_splat ? 0 : ByteWidth(dtype);
  for (int64_t i = 0; i < count; ++i) result.values.push_back(ElementAsInt64(dtype, read.literal.data() + i * stride));
  return result;
}

}  // namespace gangway::stablehlo
