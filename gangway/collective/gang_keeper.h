// Makes the gangs of one process, lends them threads and fails those that do not complete in time.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "gangway/base/clock.h"
#include "gangway/collective/gang.h"

namespace gangway::collective {

struct KeeperOptions {
  // Threads beside those of the devices that share the work of large collectives and resume waiting devices: the
  // devices' own threads wait inside the plugin meanwhile. Negative: as many as the machine has cores.
  int helper_threads = -1;
  // When a collective is incomplete and no participant has come to any for so long, the gang ends with
  // DEADLINE_EXCEEDED, naming those who are missing. Longer than a device computes between two collectives.
  absl::Duration deadline = absl::Minutes(5);
  // Not owned, must outlive the keeper; nullptr: wall time.
  const Clock* clock = nullptr;
};

// Thread-safe. One per worker process; must outlive its gangs' pending collectives (its destructor poisons them).
class GangKeeper {
 public:
  explicit GangKeeper(KeeperOptions options = {});
  ~GangKeeper();
  GangKeeper(const GangKeeper&) = delete;
  GangKeeper& operator=(const GangKeeper&) = delete;

  // One gang per launch of a program. `fabric` reaches the workers of its other participants; null where all are in
  // this process.
  std::shared_ptr<Gang> MakeGang(Launch launch, std::shared_ptr<net::Fabric> fabric = nullptr);

  // Fails what is over its deadline now. Called by the keeper's own thread every second; public for tests with a
  // manual clock.
  void Sweep();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gangway::collective
