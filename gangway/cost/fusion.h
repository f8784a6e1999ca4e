// What a good compiler keeps in memory, and what it computes where it is read.
#pragma once

#include "gangway/hlo/instruction.h"

namespace gangway::cost {

// Takes memory of its own: not a view, not a parameter, and not an elementwise value that its readers compute
// themselves.
bool IsMaterialized(const hlo::Instruction& instruction);

}  // namespace gangway::cost
