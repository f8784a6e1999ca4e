#include "gangway/worker/device_queue.h"

#include <utility>

namespace gangway::worker {

void DeviceQueue::Push(Operation operation) {
  waiting_.push_back(std::move(operation));
  Pump();
}

void DeviceQueue::Pump() {
  while (!waiting_.empty() && !armed_) {
    for (const store::Shard& input : waiting_.front().inputs) {
      if (!input.pending()) continue;
      armed_ = true;
      // Settling happens inside the store: come back in a turn of our own.
      input.OnSettled([self = shared_from_this()] {
        self->loop_->Post([self] {
          self->armed_ = false;
          self->Pump();
        });
      });
      return;
    }
    Operation next = std::move(waiting_.front());
    waiting_.pop_front();
    next.start();
  }
}

}  // namespace gangway::worker
