// Element types of the C API.
#pragma once

#include <optional>

#include "gangway/tensor/dtype.h"
#include "pjrt_c_api.h"

namespace gangway::device::pjrt {

// nullopt where the C API has no such type.
std::optional<PJRT_Buffer_Type> ToPjrt(DType dtype);
std::optional<DType> FromPjrt(PJRT_Buffer_Type type);

}  // namespace gangway::device::pjrt
