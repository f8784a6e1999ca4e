// Shape inference: the result shape of an operation from its operands and attributes (StableHLO and HLO rules).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/hlo/instruction.h"

namespace gangway::hlo {

// The shape, or what is wrong with operands or attributes; errors start with the operation, "dot(f32[2,3], f32[4]): ".
// Opcodes whose shape is free (parameter, constant, iota, reshape, broadcast, convert, bitcast, custom-call, rng,
// infeed, recv ...) take it from `wanted` and check it; dot and convolution take its element type (lhs's when absent);
// all-gather and reduce-scatter read the group size from it where the replica groups do not say. `wanted` itself, with
// its layouts, is returned when it has the inferred type; otherwise the result has no layouts.
absl::StatusOr<Shape> InferShape(Opcode opcode, absl::Span<const Shape* const> operands, const Attributes& attributes,
                                 absl::Span<const Computation* const> called, const Shape& wanted);

// For the completeness test: every opcode has a row.
bool HasInference(Opcode opcode);

}  // namespace gangway::hlo
