// The scalar functions behind elementwise operations, per wide type. Internal to eval.
#pragma once

#include "gangway/eval/wide.h"
#include "gangway/hlo/opcode.h"

namespace gangway::eval {

// `bits` is the width of the element type: integers of the wide type stand for numbers of that many bits, and results
// are wrapped to it by the caller.
template <typename W>
using UnaryFunction = W (*)(W x, int bits);
template <typename W>
using BinaryFunction = W (*)(W x, W y, int bits);

// Null when the operation is not defined on the type.
template <typename W>
UnaryFunction<W> UnaryFor(hlo::Opcode opcode);
template <typename W>
BinaryFunction<W> BinaryFor(hlo::Opcode opcode);

}  // namespace gangway::eval
