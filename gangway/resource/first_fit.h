// Placement policy: the first devices that are free, in id order.
#pragma once

#include <optional>
#include <vector>

#include "gangway/resource/cluster.h"

namespace gangway::resource {

struct SliceRequest {
  int devices = 1;
  std::optional<int> island;  // absent: any one island
};

// Pure. `taken` lists devices given out already. A slice lies in one island, on as few workers as the order of ids
// gives. RESOURCE_EXHAUSTED when no island has that many alive and free devices, INVALID_ARGUMENT for a size below 1.
absl::StatusOr<std::vector<DeviceId>> PlanSliceFirstFit(const Cluster& cluster, const SliceRequest& request,
                                                        absl::Span<const DeviceId> taken);

}  // namespace gangway::resource
