#include "gangway/device/pjrt/types.h"

#include <utility>

namespace gangway::device::pjrt {
namespace {

constexpr std::pair<DType, PJRT_Buffer_Type> kTypes[] = {
    {DType::kPred, PJRT_Buffer_Type_PRED},
    {DType::kS2, PJRT_Buffer_Type_S2},
    {DType::kS4, PJRT_Buffer_Type_S4},
    {DType::kS8, PJRT_Buffer_Type_S8},
    {DType::kS16, PJRT_Buffer_Type_S16},
    {DType::kS32, PJRT_Buffer_Type_S32},
    {DType::kS64, PJRT_Buffer_Type_S64},
    {DType::kU2, PJRT_Buffer_Type_U2},
    {DType::kU4, PJRT_Buffer_Type_U4},
    {DType::kU8, PJRT_Buffer_Type_U8},
    {DType::kU16, PJRT_Buffer_Type_U16},
    {DType::kU32, PJRT_Buffer_Type_U32},
    {DType::kU64, PJRT_Buffer_Type_U64},
    {DType::kF16, PJRT_Buffer_Type_F16},
    {DType::kF32, PJRT_Buffer_Type_F32},
    {DType::kF64, PJRT_Buffer_Type_F64},
    {DType::kBF16, PJRT_Buffer_Type_BF16},
    {DType::kC64, PJRT_Buffer_Type_C64},
    {DType::kC128, PJRT_Buffer_Type_C128},
    {DType::kF8E5M2, PJRT_Buffer_Type_F8E5M2},
    {DType::kF8E4M3, PJRT_Buffer_Type_F8E4M3},
    {DType::kF8E4M3FN, PJRT_Buffer_Type_F8E4M3FN},
    {DType::kF8E4M3B11FNUZ, PJRT_Buffer_Type_F8E4M3B11FNUZ},
    {DType::kF8E5M2FNUZ, PJRT_Buffer_Type_F8E5M2FNUZ},
    {DType::kF8E4M3FNUZ, PJRT_Buffer_Type_F8E4M3FNUZ},
    {DType::kF8E3M4, PJRT_Buffer_Type_F8E3M4},
    {DType::kF8E8M0FNU, PJRT_Buffer_Type_F8E8M0FNU},
    {DType::kF4E2M1FN, PJRT_Buffer_Type_F4E2M1FN},
    {DType::kToken, PJRT_Buffer_Type_TOKEN},
};

}  // namespace

std::optional<PJRT_Buffer_Type> ToPjrt(DType dtype) {
  for (const auto& [ours, theirs] : kTypes) {
    if (ours == dtype) return theirs;
  }
  return std::nullopt;
}

std::optional<DType> FromPjrt(PJRT_Buffer_Type type) {
  for (const auto& [ours, theirs] : kTypes) {
    if (theirs == type) return ours;
  }
  return std::nullopt;
}

}  // namespace gangway::device::pjrt
