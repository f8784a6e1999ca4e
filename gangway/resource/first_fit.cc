#include "gangway/resource/first_fit.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace gangway::resource {

absl::StatusOr<std::vector<DeviceId>> PlanSliceFirstFit(const Cluster& cluster, const SliceRequest& request,
                                                        absl::Span<const DeviceId> taken) {
  if (request.devices < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a slice of ", request.devices, " devices"));
  }
  std::map<int, std::vector<DeviceId>> free;  // by island
  for (const Device& device : cluster.devices()) {
    const bool fits = !request.island.has_value() || device.island == *request.island;
    const bool is_free = std::find(taken.begin(), taken.end(), device.id) == taken.end();
    if (fits && is_free && cluster.worker(device.worker).alive) free[device.island].push_back(device.id);
  }
  size_t most = 0;
  for (auto& [island, devices] : free) {
    most = std::max(most, devices.size());
    if (devices.size() < static_cast<size_t>(request.devices)) continue;
    devices.resize(request.devices);
    return devices;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no island has ", request.devices, " free devices; the most free ones in one island: ", most));
}

}  // namespace gangway::resource
