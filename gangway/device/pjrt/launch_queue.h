// The launches of one device: one after the other, in the order queued, on the device's own thread or on the lane.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gangway/base/executor.h"
#include "gangway/device/pjrt/lane.h"

namespace gangway::device::pjrt {

// Thread-safe. What is queued runs before the destructor returns.
class LaunchQueue {
 public:
  // `fiber` is null on the device's own thread.
  using Launch = std::function<void(Fiber* fiber)>;

  LaunchQueue(std::string name, std::shared_ptr<Lane> lane)
      : lane_(std::move(lane)), thread_(MakeThreadExecutor(std::move(name))) {}
  ~LaunchQueue();

  // `small`: it takes microseconds and waits for nothing but collectives and what the lane brings about.
  void Push(Launch launch, bool small);
  Lane& lane() { return *lane_; }

 private:
  struct Entry {
    Launch launch;
    bool small = false;
  };
  // Runs what stands first, as long as it belongs where we are; then hands over. `busy_` is ours meanwhile.
  void Run(Fiber* fiber);
  void StartFirst(bool small);

  const std::shared_ptr<Lane> lane_;  // shared by the devices
  absl::Mutex mutex_;
  std::deque<Entry> waiting_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  const std::unique_ptr<Executor> thread_;  // last: its end runs what is queued
};

}  // namespace gangway::device::pjrt
