// What a controller shows, for Prometheus.
#pragma once

#include <string>

#include "gangway/controller/observation.h"

namespace gangway::status {

// The text format. Series of one worker carry its name, those of a tenant the tenant's; sessions and programs come and
// go and are only counted.
std::string MetricsText(const controller::Observation& seen);

}  // namespace gangway::status
