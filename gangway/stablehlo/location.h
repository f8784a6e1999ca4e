// ReadLocation: where an op came from, as the metadata of an HLO instruction.
#pragma once

#include <string>

#include "gangway/hlo/instruction.h"
#include "gangway/stablehlo/bytecode/entries.h"

namespace gangway::stablehlo {

// op_name is the outermost name of the location ("jit(step)/dot_general"), file and line are the innermost frame's.
// Debug information never makes a program fail: what cannot be read is left empty.
hlo::OpMetadata ReadLocation(const bytecode::Entries& entries, bytecode::AttributeId location);

}  // namespace gangway::stablehlo
