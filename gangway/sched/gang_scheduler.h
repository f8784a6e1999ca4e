// The gang scheduler of one island: which program goes next. Event in, decisions out; pure but for its state.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "gangway/base/strong_id.h"

namespace gangway::sched {

using GangId = StrongId<struct GangIdTag, uint64_t>;
using TenantId = StrongId<struct TenantIdTag, int32_t>;

struct SchedulerOptions {
  // Launches a device may have under way or queued. Deep enough that it never idles while the report of a finished one
  // travels, shallow enough that a late-comer of another tenant need not wait for long.
  int lookahead = 256;
  // Expected device time a device may have under way or queued, beyond its first two launches: whoever has a larger
  // share must not wait behind a long line of others.
  absl::Duration horizon = absl::InfiniteDuration();
  size_t log_capacity = 4096;
};

// Any numbering, the same for all gangs of the island. Shared: a program's gangs have the same ones.
using Devices = std::shared_ptr<const std::vector<int>>;

// One launch of a program: it takes its devices together.
struct Gang {
  GangId id;
  TenantId tenant;
  Devices devices;                         // never null
  absl::Duration cost = absl::Seconds(1);  // expected device time
};

struct LogEntry {
  uint64_t sequence = 0;
  GangId gang;
  TenantId tenant;
  absl::Time when;
};

// Admitted gangs are in one total order; whoever dispatches them in that order to every device gives all devices of a
// gang the same order, so no two gangs can wait for each other crosswise.
//
// Each tenant's gangs stay in the order submitted. Among tenants those of the highest priority go first, and of these
// the one with the least device time per weight (stride scheduling; the time expected is corrected when the gang is
// over); a gang that must wait for one of its devices keeps all of them from gangs behind it, so wide gangs are not
// starved by narrow ones. Gangs on other devices pass. Not thread-safe.
class GangScheduler {
 public:
  explicit GangScheduler(SchedulerOptions options = {}) : options_(options) {}

  TenantId AddTenant(std::string name, double weight, int priority = 0);
  // Its waiting gangs are forgotten.
  void RemoveTenant(TenantId tenant);

  // True: admitted now, as the last of the order. False: it waits and Finished or Cancel will return it.
  bool Submit(Gang gang, absl::Time now);
  // An admitted gang is over and took that much device time, if known; returns those that are admitted by that, in
  // order.
  std::vector<GangId> Finished(GangId gang, absl::Time now, std::optional<absl::Duration> took = {});
  // A waiting gang will not run; returns those that are admitted by that. An admitted or unknown one is left alone.
  std::vector<GangId> Cancel(GangId gang, absl::Time now);

  int64_t waiting() const { return waiting_; }
  int64_t under_way() const { return static_cast<int64_t>(under_way_.size()); }
  // The last admissions, oldest first: who ran before whom, for post-mortems.
  const std::deque<LogEntry>& log() const { return log_; }

 private:
  struct Tenant {
    std::string name;
    double weight = 1;
    int priority = 0;
    double pass = 0;  // seconds of device time taken, divided by weight
    std::deque<Gang> waiting;
  };
  struct Load {
    int launches = 0;
    absl::Duration time;
  };
  struct UnderWay {
    Devices devices;
    TenantId tenant;
    absl::Duration cost;
  };
  bool HasRoom(const Gang& gang) const;
  void Admit(Gang gang, Tenant& tenant, absl::Time now);
  std::vector<GangId> AdmitWaiting(absl::Time now);

  const SchedulerOptions options_;
  std::map<TenantId, Tenant> tenants_;
  int32_t next_tenant_ = 0;
  double virtual_time_ = 0;  // pass of the last tenant served: where a tenant that was away starts again
  std::vector<Load> load_;   // by device
  absl::flat_hash_map<GangId, UnderWay> under_way_;
  int64_t waiting_ = 0;
  uint64_t next_sequence_ = 0;
  std::deque<LogEntry> log_;
};

}  // namespace gangway::sched
