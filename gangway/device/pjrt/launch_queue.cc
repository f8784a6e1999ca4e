#include "gangway/device/pjrt/launch_queue.h"

#include <utility>

namespace gangway::device::pjrt {

LaunchQueue::~LaunchQueue() {
  absl::MutexLock lock(&mutex_);
  auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !busy_; };
  mutex_.Await(absl::Condition(&idle));
}

void LaunchQueue::Push(Launch launch, bool small) {
  {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back({std::move(launch), small});
    if (std::exchange(busy_, true)) return;
  }
  StartFirst(small);
}

void LaunchQueue::StartFirst(bool small) {
  if (small) {
    lane_->Start([this](Fiber& fiber) { Run(&fiber); });
  } else {
    thread_->Post([this] { Run(nullptr); });
  }
}

void LaunchQueue::Run(Fiber* fiber) {
  while (true) {
    Entry first;
    {
      absl::MutexLock lock(&mutex_);
      if (waiting_.empty()) {
        busy_ = false;
        return;
      }
      const bool small = waiting_.front().small;
      if (small == (fiber != nullptr)) {
        first = std::move(waiting_.front());
        waiting_.pop_front();
      } else {
        mutex_.Unlock();
        StartFirst(small);
        mutex_.Lock();
        return;
      }
    }
    first.launch(fiber);
  }
}

}  // namespace gangway::device::pjrt
