// Scans of arrays by a function of their elements (hlo/scan_call.h), one element after the other. Internal to eval.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/eval/interpreter.h"

namespace gangway::eval {

// Of a well-formed scan call along `dim`.
absl::StatusOr<Value> EvaluateScan(Interpreter& interpreter, const hlo::Instruction& scan, int64_t dim,
                                   absl::Span<const Value> operands);

}  // namespace gangway::eval
