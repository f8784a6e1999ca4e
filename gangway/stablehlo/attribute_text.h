// PrintAttribute: an attribute as MLIR assembly, e.g. {lower = true, n = 3 : i32}: the form in which typed FFI calls
// take their attributes.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "gangway/stablehlo/bytecode/entries.h"

namespace gangway::stablehlo {

// Floats are written as their bits (0x3F800000 : f32), which is exact. Unimplemented for attributes FFI does not know.
absl::StatusOr<std::string> PrintAttribute(const bytecode::Entries& entries, bytecode::AttributeId id);

}  // namespace gangway::stablehlo
