// What the controller remembers: one record per logical array, program, session and task.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "gangway/controller/controller.h"
#include "gangway/controller/tenants.h"
#include "gangway/dataflow/progress.h"
#include "gangway/net/message.h"
#include "gangway/resource/cluster.h"
#include "gangway/resource/memory_book.h"
#include "gangway/sched/gang_scheduler.h"

namespace gangway::controller {

using net::TaskId;
using resource::Placement;
using resource::WorkerId;

std::vector<WorkerId> WorkersOf(const Placement& placement);

// What an array is and where its shards are; shared by all arrays that look alike, e.g. one output of all executions of
// a program.
struct Layout {
  ArraySpec spec;
  Placement placement;
  int64_t shard_bytes = 0;  // of the largest shard, in host form

  // Extents of the shard at a position of spec.devices.
  const DimVector& ShardDims(int position) const {
    return spec.shard_dims.size() == 1 ? spec.shard_dims[0] : spec.shard_dims[position];
  }
};

// One loading of a program on the workers of some devices. Shared: a launch holds it until it was sent, the workers
// forget the program when nobody does.
struct Deployment {
  net::ProgramId id;  // the workers' name for it
  Placement placement;
  std::vector<DeviceId> devices;          // where it was placed; seats may have changed since
  absl::flat_hash_set<WorkerId> loading;  // have it, but have not answered
  absl::flat_hash_set<WorkerId> loaded;
  std::shared_ptr<const dataflow::Graph> graph;  // of every launch
};

// What the graph's only node is called.
Name NameOf(const std::shared_ptr<const dataflow::Graph>& graph);

// An upload, copy or launch: the maker of arrays. Shared by the arrays it makes, so that one report readies them all.
struct TaskRecord {
  TaskId id;
  SessionId session;
  bool is_launch = false;
  std::shared_ptr<const ClientName> client;  // a launch's
  dataflow::Progress progress;
  net::BufferId first_output;
  int num_outputs = 0;
  IslandParts islands;                           // a launch's
  absl::Duration cost;                           // expected, likewise
  ProgramId program;                             // a launch's
  std::shared_ptr<TenantUse> use;                // that a launch counts for
  std::shared_ptr<const Deployment> deployment;  // of a launch that was not dispatched yet
  size_t asked = 0, admitted = 0;                // how many of its islands' schedulers, which decide when it goes
  bool dispatched = false;
  bool watched = false;  // somebody waits for it
  Promise<Unit> done;
  absl::Status error;  // once known
  bool over = false;
  absl::Duration took;                                         // device time, as far as told
  absl::Time submitted, dispatched_at = absl::InfinitePast();  // a launch's

  explicit TaskRecord(std::shared_ptr<const dataflow::Graph> graph) : progress(std::move(graph)) {}
  Name name() const { return NameOf(progress.shared_graph()); }  // of the program, or "upload"
  std::string What() const;                                      // for errors: "program jit_f"
  // All that have a part in it.
  const std::vector<WorkerId>& workers() const { return progress.graph().nodes[0].workers; }
};

// What one device holds for several arrays. It is theirs together: donated or deleted through one, it is gone for all.
struct SharedShard {
  bool gone = false;
  // Also held by those who have the same bytes for themselves, since a copy in place moves nothing: while there are
  // some, the device keeps what is donated.
  std::shared_ptr<const int> bytes = std::make_shared<const int>(0);
};

// How much of the controller one session takes; its tenant's sums go with it. Shared with its questions, which may
// outlive it.
struct SessionUse {
  const std::shared_ptr<TenantUse> tenant;  // null where the cluster is open
  int64_t arrays = 0;
  int64_t programs = 0;   // references to them
  int64_t questions = 0;  // to workers, not answered yet, and compilations

  void AddArrays(int64_t more);
  void AddPrograms(int64_t more);
};

struct ArrayRecord {
  SessionId session;
  SessionUse* use = nullptr;  // the session's, which has it until all its arrays are released
  net::BufferId buffer;       // the workers' name for it
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
  // Which output of which program it is, or is a view of; -1: none.
  ProgramId program;
  int output = -1;
  // Its first shard's bytes, asked for when it was made.
  std::optional<Future<std::shared_ptr<const std::string>>> early;
  // The claims on its shards' memory, shared with the arrays that hold the same shards. None for small ones.
  std::vector<resource::ClaimRef> memory;
};

// A program and all who use it.
struct ProgramRecord {
  ProgramId id;
  const std::string* key = nullptr;  // in the cache; null: it is not there (any more)
  std::shared_ptr<const CompileRequest> request;
  int references = 0;
  std::vector<DeviceId> devices;
  std::shared_ptr<Deployment> deployment;
  std::shared_ptr<Deployment> next;               // where it is to move; null: nowhere
  absl::Duration cost = absl::Microseconds(100);  // a launch's device time: a running mean of those seen
  int64_t launches = 0;                           // that are over
  Promise<std::shared_ptr<const Program>> ready;
  absl::Status error;
  int64_t runs = 0;                        // as far as they are inspected
  std::shared_ptr<const Program> program;  // null until compiled by us and loaded by every worker
  std::shared_ptr<Program> compiled;
  // What every execution needs, made once.
  IslandParts islands;
  std::vector<std::shared_ptr<const Layout>> parameters;
  // By parameter: of what was found to fit it last, though it looks otherwise. Null: nothing was.
  std::vector<std::shared_ptr<const Layout>> fitting;
  std::vector<std::shared_ptr<const Layout>> outputs;
  std::vector<int> reads;  // by output: larger the more of late were read, of those small enough to come by themselves
  int64_t output_bytes = 0;   // on each device
  int64_t scratch_bytes = 0;  // what a launch takes beside its arguments and outputs
};

// Messages that belong together, in a session's order.
struct Command {
  struct Outgoing {
    WorkerId worker;
    net::Message message;
  };
  // The task's launch, first to all its workers; null: it is none.
  std::shared_ptr<const net::Launch::Order> launch;
  std::vector<Outgoing> messages;
  std::shared_ptr<TaskRecord> task;  // whose messages they are; null for questions and frees
  // What the task makes takes this memory, all on the same devices, and `scratch` on each while it runs.
  std::vector<resource::ClaimRef> claims;
  int64_t scratch = 0;
  int64_t host_bytes = 0;                      // of the client's, in the messages
  std::vector<resource::ClaimRef> gives_back;  // claims that end when it is dispatched
};

// The question a message asks; 0: none.
net::RequestId RequestOf(const net::Message& message);
void ForEachOutput(const TaskRecord& task, absl::FunctionRef<void(net::BufferId)> f);
// Everything a command makes or uses, perhaps more than once.
void ForEachBuffer(const Command& command, absl::FunctionRef<void(net::BufferId)> f);

struct SessionRecord {
  SessionId id;
  SessionInfo info;
  std::shared_ptr<const ClientName> client;  // of all its launches
  std::shared_ptr<SessionUse> use;
  std::vector<sched::TenantId> tenants;  // by island
  absl::flat_hash_map<ProgramId, int> programs;
  std::vector<std::vector<DeviceId>> slices;
  int64_t launches = 0;        // that are over
  absl::Duration device_time;  // of these, times the devices of each
  // Behind a launch that waits for the scheduler: whatever the session does next must come after it, since it may name
  // what the launch makes. Usually empty.
  std::deque<Command> held;
  int64_t held_bytes = 0;                                  // of the client's, in these
  absl::flat_hash_map<net::BufferId, int> held_uses;       // how often `held` names a buffer
  absl::Time lacks_memory_since = absl::InfiniteFuture();  // the first of `held` waits for it
};

}  // namespace gangway::controller
