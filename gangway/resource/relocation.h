// Where what is on some devices goes when these are needed no more, or are to be.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/resource/cluster.h"

namespace gangway::resource {

using Relocation = std::vector<std::pair<DeviceId, DeviceId>>;  // from, to

// For each device one that nobody uses, of its island, on a worker that is alive and stays; on one worker where it has
// that many. `used`: by device. RESOURCE_EXHAUSTED when there are too few.
absl::StatusOr<Relocation> PlanRelocation(const Cluster& cluster, absl::Span<const DeviceId> devices,
                                          const std::vector<bool>& used);

}  // namespace gangway::resource
