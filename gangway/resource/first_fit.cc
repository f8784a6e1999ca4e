#include <algorithm>

#include "gangway/resource/slice.h"

namespace gangway::resource {

absl::StatusOr<std::vector<DeviceId>> PlanFirstFit(const Cluster& cluster, const SliceRequest& request,
                                                   absl::Span<const int> load) {
  size_t most = 0;
  for (IslandDevices& island : CandidateDevices(cluster, request)) {
    std::erase_if(island.devices, [&](DeviceId device) { return load[device.value()] > 0; });
    most = std::max(most, island.devices.size());
    if (island.devices.size() < static_cast<size_t>(request.devices)) continue;
    island.devices.resize(request.devices);
    return island.devices;
  }
  return NoIslandHas(request, most);
}

}  // namespace gangway::resource
