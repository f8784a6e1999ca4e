// Which devices a client gets: placement policies, pure functions, one per file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/resource/cluster.h"

namespace gangway::resource {

struct SliceRequest {
  int devices = 1;
  std::optional<int> island;  // any when absent
  std::string policy;         // "": spread
};

// `load`: by device, how many slices it is part of. A slice lies in one island and takes no device twice.
// RESOURCE_EXHAUSTED when no island has that many alive devices (first_fit: that many in no slice), INVALID_ARGUMENT
// for a size below 1 or an unknown policy.
absl::StatusOr<std::vector<DeviceId>> PlanSlice(const Cluster& cluster, const SliceRequest& request,
                                                absl::Span<const int> load);

// The devices of each island that the request allows, ascending: of workers that are alive and stay.
struct IslandDevices {
  int island = 0;
  std::vector<DeviceId> devices;
};
std::vector<IslandDevices> CandidateDevices(const Cluster& cluster, const SliceRequest& request);

// first_fit.cc: exclusive; the first island, by number, that has enough devices in no slice.
absl::StatusOr<std::vector<DeviceId>> PlanFirstFit(const Cluster& cluster, const SliceRequest& request,
                                                   absl::Span<const int> load);
// spread.cc: the devices with the least load, of the island where these have least together.
absl::StatusOr<std::vector<DeviceId>> PlanSpread(const Cluster& cluster, const SliceRequest& request,
                                                 absl::Span<const int> load);
// pack.cc: on as few workers as possible, of those the ones with the least load.
absl::StatusOr<std::vector<DeviceId>> PlanPack(const Cluster& cluster, const SliceRequest& request,
                                               absl::Span<const int> load);

// The error of a request that no island can serve; `most`: the devices the best one has.
absl::Status NoIslandHas(const SliceRequest& request, size_t most);

}  // namespace gangway::resource
