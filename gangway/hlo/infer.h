// Shape inference: the result shape of an operation from its operands and attributes (StableHLO and HLO rules).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/hlo/instruction.h"

namespace gangway::hlo {

// The shape, or what is wrong with operands or attributes. Opcodes whose shape is free (parameter, constant, iota,
// reshape, broadcast, convert, bitcast, custom-call, rng, infeed, recv ...) take it from `wanted` and check it.
absl::StatusOr<Shape> InferShape(Opcode opcode, absl::Span<const Shape* const> operands, const Attributes& attributes,
                                 absl::Span<const Computation* const> called, const Shape& wanted);

}  // namespace gangway::hlo
