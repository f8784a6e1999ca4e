#include <algorithm>
#include <limits>

#include "gangway/resource/slice.h"

namespace gangway::resource {

absl::StatusOr<std::vector<DeviceId>> PlanSpread(const Cluster& cluster, const SliceRequest& request,
                                                 absl::Span<const int> load) {
  std::vector<DeviceId> best;
  int64_t best_load = std::numeric_limits<int64_t>::max();
  size_t most = 0;
  for (IslandDevices& island : CandidateDevices(cluster, request)) {
    most = std::max(most, island.devices.size());
    if (island.devices.size() < static_cast<size_t>(request.devices)) continue;
    std::stable_sort(island.devices.begin(), island.devices.end(),
                     [&](DeviceId a, DeviceId b) { return load[a.value()] < load[b.value()]; });
    island.devices.resize(request.devices);
    int64_t total = 0;
    for (DeviceId device : island.devices) total += load[device.value()];
    if (total >= best_load) continue;
    best_load = total;
    best = std::move(island.devices);
  }
  if (best.empty()) return NoIslandHas(request, most);
  std::sort(best.begin(), best.end());
  return best;
}

}  // namespace gangway::resource
