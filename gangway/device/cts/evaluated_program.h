// Binds the reference evaluator to simulated devices: HLO programs with hosted operations run on device/sim.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "gangway/device/sim/sim_client.h"

namespace gangway::device {

// For SimOptions::compile.
absl::StatusOr<std::shared_ptr<const SimProgram>> EvaluatedProgram(const CompileRequest& request);

}  // namespace gangway::device
