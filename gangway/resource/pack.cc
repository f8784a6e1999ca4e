#include <algorithm>
#include <map>
#include <tuple>

#include "gangway/resource/slice.h"

namespace gangway::resource {
namespace {

struct OneWorker {
  std::vector<DeviceId> devices;
  int64_t load = 0;
};

// Whole workers, the fullest first; the last is the smallest that still suffices.
std::vector<DeviceId> TakeWorkers(std::vector<OneWorker> workers, size_t wanted) {
  std::vector<DeviceId> taken;
  while (taken.size() < wanted) {
    const size_t missing = wanted - taken.size();
    auto next = std::min_element(workers.begin(), workers.end(), [missing](const OneWorker& a, const OneWorker& b) {
      auto rank = [missing](const OneWorker& w) {
        const bool suffices = w.devices.size() >= missing;
        const int64_t size = static_cast<int64_t>(w.devices.size());
        return std::tuple(!suffices, suffices ? size : -size, w.load);
      };
      return rank(a) < rank(b);
    });
    next->devices.resize(std::min(missing, next->devices.size()));
    taken.insert(taken.end(), next->devices.begin(), next->devices.end());
    workers.erase(next);
  }
  return taken;
}

}  // namespace

absl::StatusOr<std::vector<DeviceId>> PlanPack(const Cluster& cluster, const SliceRequest& request,
                                               absl::Span<const int> load) {
  std::vector<DeviceId> best;
  size_t most = 0, best_workers = 0;
  for (const IslandDevices& island : CandidateDevices(cluster, request)) {
    most = std::max(most, island.devices.size());
    if (island.devices.size() < static_cast<size_t>(request.devices)) continue;
    std::map<WorkerId, OneWorker> by_worker;
    for (DeviceId device : island.devices) {
      OneWorker& worker = by_worker[cluster.device(device).worker];
      worker.devices.push_back(device);
      worker.load += load[device.value()];
    }
    std::vector<OneWorker> workers;
    for (auto& [id, worker] : by_worker) workers.push_back(std::move(worker));
    std::vector<DeviceId> taken = TakeWorkers(std::move(workers), request.devices);
    std::map<WorkerId, int> used;
    for (DeviceId device : taken) ++used[cluster.device(device).worker];
    if (!best.empty() && used.size() >= best_workers) continue;
    best_workers = used.size();
    best = std::move(taken);
  }
  if (best.empty()) return NoIslandHas(request, most);
  std::sort(best.begin(), best.end());
  return best;
}

}  // namespace gangway::resource
