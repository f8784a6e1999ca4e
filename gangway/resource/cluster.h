// Who is in the cluster: workers, their devices, their islands, and who is alive. A device id is a seat: clients keep
// it for good, which device of which worker sits there may change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/base/strong_id.h"

namespace gangway::resource {

using DeviceId = StrongId<struct DeviceIdTag, int32_t>;  // global over all workers, contiguous from 0
using WorkerId = StrongId<struct WorkerIdTag, int32_t>;  // contiguous from 0, in the order of registration

struct Device {
  DeviceId id;
  WorkerId worker;
  int local = 0;  // index in the worker's list
  int island = 0;
  std::string kind;
  std::vector<int64_t> coords;
};

struct Worker {
  WorkerId id;
  std::string name;
  int island = 0;
  std::vector<DeviceId> devices;  // by local index
  bool alive = false;
  bool leaves = false;  // is to be shut down: nothing new goes there
};

struct DeviceOffer {
  std::string kind;
  std::vector<int64_t> coords;
};

struct WorkerOffer {
  std::string name;
  int island = 0;
  std::vector<DeviceOffer> devices;
};

// What one worker contributes to a list of devices.
struct Share {
  struct Member {
    int position = 0;  // in the list
    int local = 0;     // on the worker
    friend bool operator==(const Member&, const Member&) = default;
  };
  WorkerId worker;
  absl::InlinedVector<Member, 8> members;
  friend bool operator==(const Share&, const Share&) = default;
};
using Placement = absl::InlinedVector<Share, 1>;  // by worker, in the order of first mention

// Plain state, not thread-safe; belongs to the controller's loop.
class Cluster {
 public:
  // A worker registers. One that comes back under its name with as many devices gets its ids again; ALREADY_EXISTS
  // while the name is alive, INVALID_ARGUMENT when it comes back with other devices or offers none.
  absl::StatusOr<WorkerId> Register(const WorkerOffer& offer);
  void MarkLost(WorkerId worker) { workers_[worker.value()].alive = false; }
  void MarkLeaving(WorkerId worker) { workers_[worker.value()].leaves = true; }
  // Two device ids of one island change places: each now means what the other meant.
  void Swap(DeviceId a, DeviceId b);

  const std::vector<Worker>& workers() const { return workers_; }
  const std::vector<Device>& devices() const { return devices_; }
  const Worker& worker(WorkerId id) const { return workers_[id.value()]; }
  bool Has(DeviceId id) const { return id.value() >= 0 && id.value() < static_cast<int32_t>(devices_.size()); }
  const Device& device(DeviceId id) const { return devices_[id.value()]; }
  int alive_devices() const;

  // Groups a list of devices by worker. INVALID_ARGUMENT when a device is unknown or named twice or the list is empty,
  // UNAVAILABLE naming the worker when one is lost.
  absl::StatusOr<Placement> Place(absl::Span<const DeviceId> devices) const;

 private:
  std::vector<Worker> workers_;
  std::vector<Device> devices_;
};

}  // namespace gangway::resource
