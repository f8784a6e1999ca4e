// Operations that compute the same of the same operands.
#pragma once

#include "gangway/hlo/computation.h"

namespace gangway::hlo {

// Kind, type of the result, attributes and called computations are alike: all but operands and shardings. Channels of
// collectives only name them. Large constants are told apart without a look at their elements.
bool SameOperation(const Instruction& a, const Instruction& b);

// Instruction by instruction, shardings included.
bool SameComputation(const Computation& a, const Computation& b);

// Constants up to this size are compared element by element.
inline constexpr int64_t kMaxComparedBytes = int64_t{1} << 16;

}  // namespace gangway::hlo
