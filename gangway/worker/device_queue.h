// What waits for its turn on one device, because an input of it or of something before it has not arrived yet.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gangway/base/executor.h"
#include "gangway/store/store.h"

namespace gangway::worker {

// Keeps the scheduler's order on a device: nothing overtakes. Belongs to the worker's loop; must be held by shared_ptr,
// since shards that settle later call back.
class DeviceQueue : public std::enable_shared_from_this<DeviceQueue> {
 public:
  struct Operation {
    std::vector<store::Shard> inputs;  // the operation starts when none is pending
    std::function<void()> start;
  };

  explicit DeviceQueue(std::shared_ptr<Executor> loop) : loop_(std::move(loop)) {}

  // True when an operation whose inputs are there may start at once, without Push.
  bool idle() const { return waiting_.empty(); }
  void Push(Operation operation);
  // Forgets what waits without starting it.
  void Clear() { waiting_.clear(); }

 private:
  void Pump();

  const std::shared_ptr<Executor> loop_;
  std::deque<Operation> waiting_;
  bool armed_ = false;  // a shard will call back
};

}  // namespace gangway::worker
