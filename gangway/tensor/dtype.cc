#include "gangway/tensor/dtype.h"

#include <array>

namespace gangway {
namespace {

using K = DTypeKind;

constexpr DTypeInfo kInfos[] = {
    {DType::kInvalid, "invalid", K::kNone, 0},
    {DType::kPred, "pred", K::kPred, 8},
    {DType::kS1, "s1", K::kSigned, 1},
    {DType::kS2, "s2", K::kSigned, 2},
    {DType::kS4, "s4", K::kSigned, 4},
    {DType::kS8, "s8", K::kSigned, 8},
    {DType::kS16, "s16", K::kSigned, 16},
    {DType::kS32, "s32", K::kSigned, 32},
    {DType::kS64, "s64", K::kSigned, 64},
    {DType::kU1, "u1", K::kUnsigned, 1},
    {DType::kU2, "u2", K::kUnsigned, 2},
    {DType::kU4, "u4", K::kUnsigned, 4},
    {DType::kU8, "u8", K::kUnsigned, 8},
    {DType::kU16, "u16", K::kUnsigned, 16},
    {DType::kU32, "u32", K::kUnsigned, 32},
    {DType::kU64, "u64", K::kUnsigned, 64},
    {DType::kF16, "f16", K::kFloat, 16},
    {DType::kF32, "f32", K::kFloat, 32},
    {DType::kBF16, "bf16", K::kFloat, 16},
    {DType::kF64, "f64", K::kFloat, 64},
    {DType::kF8E5M2, "f8e5m2", K::kFloat, 8},
    {DType::kF8E4M3, "f8e4m3", K::kFloat, 8},
    {DType::kF8E4M3FN, "f8e4m3fn", K::kFloat, 8},
    {DType::kF8E4M3B11FNUZ, "f8e4m3b11fnuz", K::kFloat, 8},
    {DType::kF8E3M4, "f8e3m4", K::kFloat, 8},
    {DType::kF8E5M2FNUZ, "f8e5m2fnuz", K::kFloat, 8},
    {DType::kF8E4M3FNUZ, "f8e4m3fnuz", K::kFloat, 8},
    {DType::kF4E2M1FN, "f4e2m1fn", K::kFloat, 4},
    {DType::kF8E8M0FNU, "f8e8m0fnu", K::kFloat, 8},
    {DType::kF6E3M2FN, "f6e3m2fn", K::kFloat, 6},
    {DType::kF6E2M3FN, "f6e2m3fn", K::kFloat, 6},
    {DType::kC64, "c64", K::kComplex, 64},
    {DType::kC128, "c128", K::kComplex, 128},
    {DType::kTuple, "tuple", K::kNone, 0},
    {DType::kOpaque, "opaque", K::kNone, 0},
    {DType::kToken, "token", K::kNone, 0},
};

constexpr int kNumbers = 37;  // one past the largest enum value

constexpr std::array<uint8_t, kNumbers> kIndex = [] {
  std::array<uint8_t, kNumbers> index{};
  for (uint8_t i = 0; i < std::size(kInfos); ++i) index[static_cast<int>(kInfos[i].dtype)] = i;
  return index;
}();

}  // namespace

absl::Span<const DTypeInfo> AllDTypes() { return kInfos; }

const DTypeInfo& InfoOf(DType dtype) {
  int number = static_cast<int>(dtype);
  return kInfos[number < kNumbers ? kIndex[number] : 0];
}

std::optional<DType> ParseDType(absl::string_view name) {
  for (const DTypeInfo& info : kInfos) {
    if (info.name == name && info.dtype != DType::kInvalid && info.dtype != DType::kTuple) return info.dtype;
  }
  return std::nullopt;
}

}  // namespace gangway
