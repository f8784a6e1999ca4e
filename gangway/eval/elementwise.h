// Elementwise operations on any shape. Internal to eval.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/hlo/instruction.h"
#include "gangway/tensor/literal.h"

namespace gangway::eval {

// True for what EvaluateElementwise takes: the elementwise opcodes and clamp.
bool IsLiftable(hlo::Opcode opcode);

// Applies the instruction's operation element by element. `shape` may be larger than the instruction's (a scalar
// function applied to many lanes); an operand of one element is repeated.
absl::StatusOr<Literal> EvaluateElementwise(const hlo::Instruction& instruction,
                                            absl::Span<const Literal* const> operands, const Shape& shape);

}  // namespace gangway::eval
