#include "gangway/resource/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gangway::resource {

absl::StatusOr<WorkerId> Cluster::Register(const WorkerOffer& offer) {
  if (offer.name.empty()) return absl::InvalidArgumentError("a worker must have a name");
  if (offer.devices.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", offer.name, " offers no devices"));
  }
  for (Worker& worker : workers_) {
    if (worker.name != offer.name) continue;
    if (worker.alive) return absl::AlreadyExistsError(absl::StrCat("a worker named ", offer.name, " is registered"));
    if (worker.devices.size() != offer.devices.size() || worker.island != offer.island) {
      return absl::InvalidArgumentError(absl::StrCat("worker ", offer.name, " came back with ", offer.devices.size(),
                                                     " devices in island ", offer.island, ", it had ",
                                                     worker.devices.size(), " in island ", worker.island));
    }
    worker.alive = true;
    worker.leaves = false;
    return worker.id;
  }
  Worker worker;
  worker.id = WorkerId(static_cast<int32_t>(workers_.size()));
  worker.name = offer.name;
  worker.island = offer.island;
  worker.alive = true;
  for (const DeviceOffer& device : offer.devices) {
    const DeviceId id(static_cast<int32_t>(devices_.size()));
    const int local = static_cast<int>(worker.devices.size());
    devices_.push_back({id, worker.id, local, offer.island, device.kind, device.coords});
    worker.devices.push_back(id);
  }
  workers_.push_back(std::move(worker));
  return workers_.back().id;
}

void Cluster::Swap(DeviceId a, DeviceId b) {
  std::swap(devices_[a.value()], devices_[b.value()]);
  for (DeviceId id : {a, b}) {
    Device& device = devices_[id.value()];
    device.id = id;
    workers_[device.worker.value()].devices[device.local] = id;
  }
}

int Cluster::alive_devices() const {
  int count = 0;
  for (const Worker& worker : workers_) count += worker.alive ? static_cast<int>(worker.devices.size()) : 0;
  return count;
}

absl::StatusOr<Placement> Cluster::Place(absl::Span<const DeviceId> devices) const {
  if (devices.empty()) return absl::InvalidArgumentError("no devices named");
  Placement placement;
  std::vector<int> share_of(workers_.size(), -1);
  std::vector<bool> named(devices_.size(), false);
  for (size_t position = 0; position < devices.size(); ++position) {
    if (!Has(devices[position])) {
      return absl::InvalidArgumentError(absl::StrCat("there is no device ", devices[position].value()));
    }
    const Device& device = this->device(devices[position]);
    const Worker& owner = worker(device.worker);
    if (!owner.alive) {
      return absl::UnavailableError(absl::StrCat("device ", device.id.value(), ": worker ", owner.name, " is lost"));
    }
    if (named[device.id.value()]) {
      return absl::InvalidArgumentError(absl::StrCat("device ", device.id.value(), " is named twice"));
    }
    named[device.id.value()] = true;
    int& share = share_of[device.worker.value()];
    if (share < 0) {
      share = static_cast<int>(placement.size());
      placement.push_back({device.worker, {}});
    }
    placement[share].members.push_back({static_cast<int>(position), device.local});
  }
  return placement;
}

}  // namespace gangway::resource
