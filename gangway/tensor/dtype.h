// Element types. The numbers are those of XLA's PrimitiveType, so protos and wire formats need no table.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gangway {

enum class DType : uint8_t {
  kInvalid = 0,
  kPred = 1,
  kS1 = 30,
  kS2 = 26,
  kS4 = 21,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU1 = 31,
  kU2 = 27,
  kU4 = 22,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kBF16 = 16,
  kF64 = 12,
  kF8E5M2 = 19,
  kF8E4M3 = 28,
  kF8E4M3FN = 20,
  kF8E4M3B11FNUZ = 23,
  kF8E3M4 = 29,
  kF8E5M2FNUZ = 24,
  kF8E4M3FNUZ = 25,
  kF4E2M1FN = 32,
  kF8E8M0FNU = 33,
  kF6E3M2FN = 35,
  kF6E2M3FN = 36,
  kC64 = 15,
  kC128 = 18,
  kTuple = 13,   // not an element: the shape is a list of shapes
  kOpaque = 14,  // not an element
  kToken = 17,   // not an element: orders side effects
};

enum class DTypeKind : uint8_t { kPred, kSigned, kUnsigned, kFloat, kComplex, kNone };

struct DTypeInfo {
  DType dtype;
  absl::string_view name;  // as HLO text writes it: "f32"
  DTypeKind kind;
  int bits;  // meaningful bits of one element; 0 for kNone
};

// Every type once, in the order of the enum above.
absl::Span<const DTypeInfo> AllDTypes();

// Info of a type; a value outside the enum gives that of kInvalid.
const DTypeInfo& InfoOf(DType dtype);

std::optional<DType> ParseDType(absl::string_view name);

inline absl::string_view DTypeName(DType dtype) { return InfoOf(dtype).name; }
inline int BitWidth(DType dtype) { return InfoOf(dtype).bits; }
// Bytes of one element in memory and on the wire between our processes: sub-byte types take one byte an element.
inline int ByteWidth(DType dtype) { return (BitWidth(dtype) + 7) / 8; }
inline DTypeKind KindOf(DType dtype) { return InfoOf(dtype).kind; }
inline bool IsElement(DType dtype) { return KindOf(dtype) != DTypeKind::kNone; }
inline bool IsFloat(DType dtype) { return KindOf(dtype) == DTypeKind::kFloat; }
inline bool IsComplex(DType dtype) { return KindOf(dtype) == DTypeKind::kComplex; }
inline bool IsSigned(DType dtype) { return KindOf(dtype) == DTypeKind::kSigned; }
inline bool IsUnsigned(DType dtype) { return KindOf(dtype) == DTypeKind::kUnsigned; }
inline bool IsInteger(DType dtype) { return IsSigned(dtype) || IsUnsigned(dtype); }

}  // namespace gangway
