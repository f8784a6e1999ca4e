// How a parameter or result of the entry lies, as its client asks for it.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "gangway/tensor/shape.h"

namespace gangway::passes {

inline constexpr absl::string_view kAutoLayout = "auto";

// Dimensions from minor to major for a mode as in ModuleConfig: a layout's text ("{0,1}", tiles are left out), or else
// row-major.
DimVector MinorToMajor(absl::string_view mode, int64_t rank);

}  // namespace gangway::passes
