// Checks that a module is well formed.
#pragma once

#include "absl/status/status.h"
#include "gangway/hlo/module.h"

namespace gangway::hlo {

// Operand counts, attribute families, inferred shapes, parameters, roots, called signatures, no cycles, definitions
// before uses, sharding ranks. The first fault, with the computation and instruction named.
// Callees must come before callers (SortComputations), which excludes recursion.
absl::Status Verify(const Module& module);

}  // namespace gangway::hlo
