// Applies the scalar computations of reduce, sort, scatter and map to many elements at once. Internal to eval.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/eval/interpreter.h"
#include "gangway/hlo/computation.h"

namespace gangway::eval {

// Evaluates a computation on scalars for `lanes` independent sets of arguments: arguments[p] has shape [lanes] (or one
// element, which stands for all), and so have the results, one per leaf of the root.
absl::StatusOr<std::vector<Literal>> ApplyToLanes(Interpreter& interpreter, const hlo::Computation& computation,
                                                  int64_t lanes, std::vector<Literal> arguments);

// The opcode when the computation is `op(parameter 0, parameter 1)` of one type.
std::optional<hlo::Opcode> AsBinary(const hlo::Computation& computation);

// Elements of `from` (row-major, any shape) at `indices`, as shape [indices.size()].
Literal GatherLanes(const Literal& from, absl::Span<const int64_t> indices);

}  // namespace gangway::eval
