// What the controller remembers: one record per logical array, program, session and task.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gangway/controller/controller.h"
#include "gangway/dataflow/progress.h"
#include "gangway/net/message.h"
#include "gangway/resource/cluster.h"
#include "gangway/sched/gang_scheduler.h"

namespace gangway::controller {

using net::TaskId;
using resource::Placement;
using resource::WorkerId;

// What an array is and where its shards are; shared by all arrays that look alike, e.g. one output of all executions of
// a program.
struct Layout {
  ArraySpec spec;
  Placement placement;

  // Extents of the shard at a position of spec.devices.
  const DimVector& ShardDims(int position) const {
    return spec.shard_dims.size() == 1 ? spec.shard_dims[0] : spec.shard_dims[position];
  }
};

// An upload, copy or launch: the maker of arrays. Shared by the arrays it makes, so that one report readies them all.
struct TaskRecord {
  TaskId id;
  SessionId session;
  bool is_launch = false;
  std::string what;  // for errors: "program jit_f"
  dataflow::Progress progress;
  net::BufferId first_output;
  int num_outputs = 0;
  int island = 0;
  std::vector<int> devices;  // a launch's, for the scheduler
  absl::Duration cost;       // expected, likewise
  ProgramId program;         // which a launch holds until it is dispatched
  bool dispatched = false;
  bool watched = false;  // somebody waits for it
  Promise<Unit> done;
  absl::Status error;  // once known
  bool over = false;
  absl::Duration took;                                         // device time, as far as told
  absl::Time submitted, dispatched_at = absl::InfinitePast();  // a launch's

  explicit TaskRecord(std::shared_ptr<const dataflow::Graph> graph) : progress(std::move(graph)) {}
};

// What one device holds for several arrays. It is theirs together: donated or deleted through one, it is gone for all.
struct SharedShard {
  bool gone = false;
  // Also held by those who have the same bytes for themselves, since a copy in place moves nothing: while there are
  // some, the device keeps what is donated.
  std::shared_ptr<const int> bytes = std::make_shared<const int>(0);
};

struct ArrayRecord {
  SessionId session;
  std::shared_ptr<const Layout> layout;
  std::shared_ptr<TaskRecord> producer;  // null: made of nothing (error arrays)
  absl::Status error;                    // of the array itself: lost worker, error array
  bool deleted = false;
  // By position; empty, or null, where no other array ever held the shard.
  std::vector<std::shared_ptr<SharedShard>> shared;

  // Makes it shared; the caller hands it to another array.
  std::shared_ptr<SharedShard>& Share(int position);
  // By its own name or another's.
  bool IsDeleted() const;
  // Somebody has the bytes of a shard for himself.
  bool HasCopiesInPlace() const;
};

// A program and all who use it.
struct ProgramRecord {
  ProgramId id;
  std::string key;  // of the content, for the cache
  int references = 0;
  std::vector<DeviceId> devices;
  Placement placement;
  int island = 0;
  absl::Duration cost = absl::Microseconds(100);  // a launch's device time: a running mean of those seen
  int64_t launches = 0;                           // that are over
  Promise<std::shared_ptr<const Program>> ready;
  absl::Status error;
  std::shared_ptr<const Program> program;  // null until compiled by us and loaded by every worker
  std::shared_ptr<const Program> compiled;
  absl::flat_hash_set<WorkerId> loading;  // have it, but have not answered
  absl::flat_hash_set<WorkerId> loaded;
  // What every execution needs, made once.
  std::shared_ptr<const dataflow::Graph> graph;
  std::vector<int> scheduler_devices;
  std::vector<std::shared_ptr<const Layout>> parameters;
  std::vector<std::shared_ptr<const Layout>> outputs;
};

// Messages that belong together, in a session's order.
struct Command {
  struct Outgoing {
    WorkerId worker;
    net::Message message;
  };
  std::vector<Outgoing> messages;
  std::shared_ptr<TaskRecord> task;  // whose messages they are; null for questions and frees
};

struct SessionRecord {
  SessionInfo info;
  std::vector<sched::TenantId> tenants;  // by island
  absl::flat_hash_map<ProgramId, int> programs;
  std::vector<DeviceId> sliced;  // devices of its slices, once for each
  int64_t launches = 0;          // that are over
  absl::Duration device_time;    // of these, times the devices of each
  // Behind a launch that waits for the scheduler: whatever the session does next must come after it, since it may name
  // what the launch makes. Usually empty.
  std::deque<Command> held;
};

}  // namespace gangway::controller
