#include "gangway/resource/relocation.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace gangway::resource {

absl::StatusOr<Relocation> PlanRelocation(const Cluster& cluster, absl::Span<const DeviceId> devices,
                                          const std::vector<bool>& used) {
  std::map<int, std::vector<DeviceId>> wanted;  // by island
  for (DeviceId device : devices) wanted[cluster.device(device).island].push_back(device);
  Relocation plan;
  for (const auto& [island, leaving] : wanted) {
    std::vector<std::vector<DeviceId>> free;  // by worker
    for (const Worker& worker : cluster.workers()) {
      if (!worker.alive || worker.leaves || worker.island != island) continue;
      free.emplace_back();
      for (DeviceId device : worker.devices) {
        if (!used[device.value()]) free.back().push_back(device);
      }
    }
    // The smallest worker that takes them all, otherwise the largest ones first.
    std::stable_sort(free.begin(), free.end(), [count = leaving.size()](const auto& a, const auto& b) {
      const bool a_suffices = a.size() >= count, b_suffices = b.size() >= count;
      if (a_suffices != b_suffices) return a_suffices;
      return a_suffices ? a.size() < b.size() : a.size() > b.size();
    });
    std::vector<DeviceId> targets;
    for (const auto& worker : free) targets.insert(targets.end(), worker.begin(), worker.end());
    if (targets.size() < leaving.size()) {
      return absl::ResourceExhaustedError(absl::StrCat("island ", island, " has ", targets.size(),
                                                       " devices that nobody uses, ", leaving.size(), " are needed"));
    }
    for (size_t i = 0; i < leaving.size(); ++i) plan.emplace_back(leaving[i], targets[i]);
  }
  return plan;
}

}  // namespace gangway::resource
