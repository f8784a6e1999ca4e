#include "gangway/stablehlo/bytecode/type.h"

#include <type_traits>

#include "absl/strings/str_cat.h"

namespace gangway::bytecode {
namespace {

struct ScalarFacts {
  absl::string_view name;
  int bits;
  bool is_float;
};

// In the order of Scalar.
constexpr ScalarFacts kScalars[] = {
    {"i1", 1, false},        {"i2", 2, false},           {"i4", 4, false},      {"i8", 8, false},
    {"i16", 16, false},      {"i32", 32, false},         {"i64", 64, false},    {"ui2", 2, false},
    {"ui4", 4, false},       {"ui8", 8, false},          {"ui16", 16, false},   {"ui32", 32, false},
    {"ui64", 64, false},     {"f4E2M1FN", 4, true},      {"f6E2M3FN", 6, true}, {"f6E3M2FN", 6, true},
    {"f8E5M2", 8, true},     {"f8E4M3", 8, true},        {"f8E4M3FN", 8, true}, {"f8E5M2FNUZ", 8, true},
    {"f8E4M3FNUZ", 8, true}, {"f8E4M3B11FNUZ", 8, true}, {"f8E3M4", 8, true},   {"f8E8M0FNU", 8, true},
    {"bf16", 16, true},      {"f16", 16, true},          {"tf32", 19, true},    {"f32", 32, true},
    {"f64", 64, true},       {"index", 64, false},
};
static_assert(std::size(kScalars) == static_cast<size_t>(Scalar::kIndex) + 1);

}  // namespace

absl::string_view ScalarName(Scalar scalar) { return kScalars[static_cast<int>(scalar)].name; }
int ScalarBits(Scalar scalar) { return kScalars[static_cast<int>(scalar)].bits; }
bool IsFloat(Scalar scalar) { return kScalars[static_cast<int>(scalar)].is_float; }

std::string TypeKind(const Type& type) {
  struct Namer {
    std::string operator()(const ScalarType& t) const { return std::string(ScalarName(t.scalar)); }
    std::string operator()(const ComplexType&) const { return "a complex number"; }
    std::string operator()(const TensorType&) const { return "a tensor"; }
    std::string operator()(const TupleType&) const { return "a tuple"; }
    std::string operator()(const FunctionType&) const { return "a function type"; }
    std::string operator()(const BufferType&) const { return "a buffer"; }
    std::string operator()(const FutureType&) const { return "a future"; }
    std::string operator()(const TokenType&) const { return "a token"; }
    std::string operator()(const NoneType&) const { return "none"; }
    std::string operator()(const OtherType& t) const { return absl::StrCat("the type ", t.name); }
  };
  return std::visit(Namer(), type);
}

}  // namespace gangway::bytecode
