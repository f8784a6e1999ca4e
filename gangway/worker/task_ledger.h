// Which tasks of a worker are under way, and what the controller is still to be told about those that are over.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "gangway/base/executor.h"
#include "gangway/net/message.h"
#include "gangway/worker/pieces.h"

namespace gangway::worker {

using net::TaskId;

// One task: a launch, copy or upload with one part per device. Parts end on any thread.
class Task {
 public:
  // `over` is called once, on the thread that ends the last part.
  using Over = std::function<void(const absl::Status&, uint32_t micros)>;
  Task(TaskId id, int parts, Over over);

  TaskId id() const { return id_; }
  // The first error is the task's; the last part to end closes it. `took`: the part's device time.
  void PartDone(const absl::Status& status, absl::Duration took = absl::ZeroDuration());

 private:
  void Close(const absl::Status& status);

  const TaskId id_;
  std::atomic<int64_t> micros_ = 0;  // of the part that took longest
  Over over_;
  Pieces parts_;
};

// Belongs to the worker's loop; parts of its tasks end anywhere and come back to the loop.
//
// Most tasks are over without anybody waiting for them. Their report rides with the next message or the next tick, so a
// stream of launches costs the network, and the controller, nothing but the launches.
class TaskLedger {
 public:
  // `send` gets a report; `urgent`: somebody waits for it.
  using Send = std::function<void(net::TasksDone, bool urgent)>;
  TaskLedger(std::shared_ptr<Executor> loop, Send send) : loop_(std::move(loop)), send_(std::move(send)) {}

  // A task of `parts` parts (0: over at once). `report`: tell at once when it is over.
  std::shared_ptr<Task> Begin(TaskId id, int parts, bool report);
  void Watch(const std::vector<TaskId>& tasks);
  // Tasks that end from now on find nobody.
  void Stop() { self_.reset(); }
  // Sends what was held back, without hurry.
  void Flush();
  int64_t pending() const { return static_cast<int64_t>(open_.size()); }

 private:
  void Over(TaskId id, absl::Status status, uint32_t micros);

  const std::shared_ptr<Executor> loop_;  // shared with tasks, which may end after the ledger
  const Send send_;
  absl::flat_hash_map<TaskId, bool> open_;  // -> somebody waits
  net::TasksDone unsaid_;
  // Callbacks of tasks hold it weakly.
  std::shared_ptr<TaskLedger*> self_ = std::make_shared<TaskLedger*>(this);
};

}  // namespace gangway::worker
