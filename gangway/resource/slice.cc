#include "gangway/resource/slice.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace gangway::resource {

std::vector<IslandDevices> CandidateDevices(const Cluster& cluster, const SliceRequest& request) {
  std::map<int, std::vector<DeviceId>> by_island;
  for (const Device& device : cluster.devices()) {
    if (request.island.has_value() && device.island != *request.island) continue;
    const Worker& worker = cluster.worker(device.worker);
    if (worker.alive && !worker.leaves) by_island[device.island].push_back(device.id);
  }
  std::vector<IslandDevices> candidates;
  for (auto& [island, devices] : by_island) candidates.push_back({island, std::move(devices)});
  return candidates;
}

absl::Status NoIslandHas(const SliceRequest& request, size_t most) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no island has ", request.devices, " free devices; the most free ones in one island: ", most));
}

absl::StatusOr<std::vector<DeviceId>> PlanSlice(const Cluster& cluster, const SliceRequest& request,
                                                absl::Span<const int> load) {
  if (request.devices < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a slice of ", request.devices, " devices"));
  }
  if (request.policy.empty() || request.policy == "spread") return PlanSpread(cluster, request, load);
  if (request.policy == "first_fit") return PlanFirstFit(cluster, request, load);
  if (request.policy == "pack") return PlanPack(cluster, request, load);
  return absl::InvalidArgumentError(
      absl::StrCat("placement policy \"", request.policy, "\" is none of spread, first_fit, pack"));
}

}  // namespace gangway::resource
