// ReadPortableArtifact: a StableHLO portable artifact (what JAX sends) as a module of our IR.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/hlo/module.h"

namespace gangway::stablehlo {

// True when the bytes start like MLIR bytecode.
bool IsPortableArtifact(absl::string_view bytes);

// MLIR bytecode versions 0 to 6 with the dialects vhlo (all op versions to StableHLO 1.22), sdy and builtin. How
// sharding annotations, manual computations, donation and locations appear in the module: README.md of this folder. The
// module passes hlo::Verify. Keeps no reference to `bytes`. Errors: InvalidArgument for malformed files (byte offset
// named) and programs (op and attribute named), Unimplemented for what this reader or our IR does not have, e.g.
// quantized types and dynamic shapes.
absl::StatusOr<std::unique_ptr<hlo::Module>> ReadPortableArtifact(absl::string_view bytes);

}  // namespace gangway::stablehlo
