// Arrays of one repeated constant, and what follows from one.
#pragma once

#include "gangway/hlo/instruction.h"

namespace gangway::hlo {

// The literal whose one element fills a constant, or a broadcast of such a constant; null for anything else.
const Literal* SplatOf(const Instruction* instruction);

// Every element is that number; a zero may have either sign.
bool IsSplat(const Instruction* instruction, double value);

// No element can be zero: constants, what only moves or widens them, and maxima with a positive one.
bool IsNeverZero(const Instruction* instruction);

}  // namespace gangway::hlo
