// Launches as a trace for Perfetto or chrome://tracing.
#pragma once

#include <string>
#include <vector>

#include "gangway/controller/observation.h"

namespace gangway::status {

// The Trace Event Format: rows of sessions, schedulers and devices; microseconds since the epoch. Launches that ended
// before `from` are left out.
std::string TraceJson(const std::vector<controller::LaunchRecord>& launches,
                      const std::vector<controller::TransferSample>& transfers, absl::Time from);

}  // namespace gangway::status
