// A whole cluster in simulated time, one thread, one seed: the controller and workers of production over a simulated
// network and modelled devices.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gangway/base/sim_timeline.h"
#include "gangway/base/strand.h"
#include "gangway/collective/gang_keeper.h"
#include "gangway/controller/runtime_controller.h"
#include "gangway/device/device.h"
#include "gangway/net/inproc/inproc_fabric.h"
#include "gangway/net/sim/sim_network.h"
#include "gangway/worker/worker.h"

namespace gangway {

// "modelled text|params=2|donate=0": a compiler of one-line programs for modelled devices (see modelled_device.h); what
// they take is of the shape they give.
absl::StatusOr<compile::CompiledProgram> CompileModelled(const std::string& artifact,
                                                         const compile::CompileOptions& options);

struct SimWorker {
  int devices = 1;
  net::SimLink link = {};  // to the controller
  int island = 0;
  int64_t device_memory = 0;  // bytes; 0: as much as one likes
  int rank = -1;              // see net::Hello
};

// The way from a worker to others: a parcel waits until those before it have left, then takes once to twice the delay.
struct SimFabricLink {
  absl::Duration delay;
  double bytes_per_second;
};

struct SimClusterOptions {
  uint64_t seed = 0;
  sched::SchedulerOptions scheduler = {};
  controller::TenantTable tenants = {};
  controller::SessionLimits session = {};
  std::function<void(const std::string&)> log = nullptr;
  SimFabricLink inside_island = {absl::Microseconds(10), 1e10};
  SimFabricLink between_islands = {absl::Microseconds(10), 1e10};
  // What runs the controller's turns; the timeline's executor where it is empty.
  std::function<std::unique_ptr<Executor>(SimTimeline&)> controller_executor = nullptr;
};

class SimCluster {
 public:
  explicit SimCluster(SimClusterOptions options);
  explicit SimCluster(uint64_t seed) : SimCluster(SimClusterOptions{.seed = seed}) {}
  ~SimCluster();

  // Joins after a network delay. A name that was lost may join again.
  void AddWorker(const std::string& name, const SimWorker& worker);
  // The worker asks to be done without, as one does that is told to end in peace.
  void Leave(const std::string& name);
  // Whether its controller still knows it.
  bool IsConnected(const std::string& name) const;
  // Buffers in one worker's store.
  int64_t StoreBuffers(const std::string& name) const;
  // The worker process ends.
  void Kill(const std::string& name);
  // Whether the controller's loop is held up by something: its ticks do not come.
  void HoldUp(bool held_up) { held_up_ = held_up; }
  // Launches on a device of a worker fail from now on (or no longer).
  void BreakDevice(const std::string& worker, int device, bool broken);
  // Programs that the controller's compiler was asked for.
  int compiled() const { return compiled_; }
  // Buffers in the stores of all workers that live.
  int64_t StoreBuffers() const;

  // Runs `f(controller)` on its loop and returns what it returns.
  template <typename F>
  auto On(F f) {
    using R = decltype(f(*controller_));
    std::optional<R> result;
    loop_.Post([&] { result.emplace(f(*controller_)); });
    timeline_.executor().RunUntilIdle();
    while (!result.has_value()) RunFor(absl::Microseconds(1));  // the controller is busy
    return *std::move(result);
  }
  // The same from an event of the timeline, where nothing may be waited for.
  void Post(std::function<void(controller::RuntimeController&)> f) {
    loop_.Post([this, f = std::move(f)] { f(*controller_); });
  }
  void RunFor(absl::Duration span) { timeline_.RunFor(span); }

  // An array of that shape whole on each of the devices, its first element `value` and the others 0.
  absl::StatusOr<controller::ArrayId> Put(controller::SessionId session, const Shape& shape,
                                          std::vector<controller::DeviceId> devices, int32_t value);
  // The first element of a shard, after that much time; DEADLINE_EXCEEDED when it is not there by then.
  absl::StatusOr<int32_t> Value(controller::ArrayId array, int shard, absl::Duration patience);

  SimTimeline& timeline() { return timeline_; }
  net::SimNetwork& network() { return network_; }
  controller::RuntimeController& controller() { return *controller_; }

 private:
  struct Node {
    std::unique_ptr<device::Client> client;
    std::shared_ptr<Strand> loop;
    std::shared_ptr<net::Fabric> fabric;
    std::unique_ptr<worker::Worker> worker;
    std::vector<bool> broken;
  };
  struct Nic {
    int island = 0;
    absl::Time free;  // when what was sent has left
  };
  void Tick();
  void Stop(Node& node);
  void Carry(const net::InprocFabrics::Freight& freight, std::function<void()> deliver);

  const SimClusterOptions options_;
  SimTimeline timeline_;
  net::SimNetwork network_;
  std::map<std::string, Nic> nics_;  // by the fabric's address
  net::InprocFabrics fabrics_;
  std::unique_ptr<Executor> controller_executor_;
  Strand loop_;
  collective::GangKeeper gangs_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Node>> dead_;  // devices may still be busy with what they were told
  std::unique_ptr<controller::RuntimeController> controller_;
  int compiled_ = 0;
  bool stopping_ = false, held_up_ = false;
};

}  // namespace gangway
