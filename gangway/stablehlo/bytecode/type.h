// Type: the types of the builtin and vhlo dialects as plain values, one vocabulary for both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gangway/base/strong_id.h"

namespace gangway::bytecode {

// Index into the file's attribute table and type table.
using AttributeId = StrongId<struct AttributeTag, uint32_t>;
using TypeId = StrongId<struct TypeTag, uint32_t>;

// The extent of a dimension that is not known.
inline constexpr int64_t kDynamic = INT64_MIN;

enum class Scalar : uint8_t {
  kBool,
  kS2,
  kS4,
  kS8,
  kS16,
  kS32,
  kS64,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF4E2M1FN,
  kF6E2M3FN,
  kF6E3M2FN,
  kF8E5M2,
  kF8E4M3,
  kF8E4M3FN,
  kF8E5M2FNUZ,
  kF8E4M3FNUZ,
  kF8E4M3B11FNUZ,
  kF8E3M4,
  kF8E8M0FNU,
  kBF16,
  kF16,
  kTF32,
  kF32,
  kF64,
  kIndex,
};
// "f32", "bf16", "i1"...
absl::string_view ScalarName(Scalar scalar);
// Bits of a value, e.g. 1, 4, 32; tf32 has 19, index 64.
int ScalarBits(Scalar scalar);
bool IsFloat(Scalar scalar);

struct ScalarType {
  Scalar scalar;
};
struct ComplexType {
  TypeId element;
};
struct TensorType {
  std::vector<int64_t> dimensions;  // kDynamic where unknown
  TypeId element;
  std::optional<AttributeId> encoding;
};
struct TupleType {
  std::vector<TypeId> elements;
};
struct FunctionType {
  std::vector<TypeId> inputs;
  std::vector<TypeId> results;
};
struct BufferType {
  std::vector<int64_t> dimensions;
  TypeId element;
};
struct FutureType {
  std::vector<TypeId> types;
};
struct TokenType {};
struct NoneType {};
// Known to exist, of no use to us: quantized types, memrefs, vectors...; the name is for messages.
struct OtherType {
  std::string name;
};

using Type = std::variant<ScalarType, ComplexType, TensorType, TupleType, FunctionType, BufferType, FutureType,
                          TokenType, NoneType, OtherType>;

// "a tensor", "a token"..., for messages.
std::string TypeKind(const Type& type);

}  // namespace gangway::bytecode
