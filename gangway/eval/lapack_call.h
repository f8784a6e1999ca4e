// Calls of LAPACK's routines (gangway/lapack), evaluated by the very library that CPU devices use.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/eval/value.h"
#include "gangway/hlo/instruction.h"
#include "gangway/lapack/routine.h"

namespace gangway::eval {

absl::StatusOr<Value> EvaluateLapackCall(const lapack::Routine& routine, const hlo::Instruction& call,
                                         absl::Span<const Value> operands);

}  // namespace gangway::eval
