// Programs made by hand instead of by the compiler: for tests and measurements of the runtime alone.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "gangway/compile/compile.h"

namespace gangway {

// HLO text of one device's program that sums a scalar over `devices` and adds 1.
std::string AllReduceAddOne(int devices);

// HLO text as an artifact: compiled as it is, one parameter and one output per entry parameter and result leaf, all
// replicated. A CompileFunction for controllers.
absl::StatusOr<compile::CompiledProgram> CompileHloText(const std::string& text,
                                                        const compile::CompileOptions& options);

}  // namespace gangway
