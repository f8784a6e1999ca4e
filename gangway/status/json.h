// What a controller shows, as JSON.
#pragma once

#include <string>
#include <vector>

#include "gangway/controller/launch_journal.h"
#include "gangway/controller/observation.h"

namespace gangway::status {

// {"when", "totals", "workers", "sessions", "programs", "recent"}; times in seconds since the epoch, durations in
// seconds. `recent` is newest last.
std::string StatusJson(const controller::Observation& seen, const std::vector<controller::ProgramState>& programs,
                       const controller::LaunchList& recent);

}  // namespace gangway::status
