// Scenarios of the runtime as text: what happens when, and what must come of it. README.md has the language.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gangway {

// Runs a scenario in simulated time; the trace has one event a line, "time event". INVALID_ARGUMENT naming the line
// that is no command.
absl::StatusOr<std::vector<std::string>> RunScenario(const std::string& text, uint64_t seed);

// Compares a trace with the scenario's CHECK lines: each must be part of a trace line, in this order; a CHECK-NOT must
// be part of none. Empty when all is well, otherwise what is wrong.
std::string CheckTrace(const std::string& scenario, const std::vector<std::string>& trace);

}  // namespace gangway
