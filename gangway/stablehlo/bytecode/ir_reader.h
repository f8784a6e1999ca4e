// ReadIr: the IR section of a file as an op tree.
#pragma once

#include "absl/status/statusor.h"
#include "gangway/stablehlo/bytecode/container.h"
#include "gangway/stablehlo/bytecode/operation.h"

namespace gangway::bytecode {

// Regions nested deeper are an error, so that walking the tree by recursion is safe.
inline constexpr int kMaxRegionDepth = 128;

absl::StatusOr<OpTree> ReadIr(const Container& container);

}  // namespace gangway::bytecode
