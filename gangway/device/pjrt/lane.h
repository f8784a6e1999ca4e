// One thread for the small launches of all devices of a worker.
//
// A launch with a collective waits for the same launch on the other devices. On a thread of its own for each device,
// that is a switch of threads per device and collective, which for a program of microseconds is most of its cost. Here
// each launch runs on a stack of its own and hands the thread to the next one instead of waiting: a gang of small
// launches passes through its collectives without waking anybody.
#pragma once

#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "gangway/collective/gang.h"

namespace gangway::device::pjrt {

class Lane;

// A stack and what runs on it. Only code that runs on it calls anything but Wake.
class Fiber {
 public:
  // Whether the caller is on it: a launch's work may be called back on the plugin's own threads.
  bool IsHere() const { return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
  // Gives the thread to others until Wake, which may have come before; the status is Wake's. `gang`: what it waits for,
  // where the thread may look out for it before it sleeps.
  absl::Status Suspend(std::shared_ptr<collective::Gang> gang = nullptr);
  // How long it has had the thread since Start, in nanoseconds.
  int64_t spent_ns() const;
  // Once for each Suspend, from anywhere.
  void Wake(absl::Status status);

 private:
  friend class Lane;
  explicit Fiber(Lane& lane) : lane_(lane) {}

  Lane& lane_;
  std::function<void(Fiber&)> work_;
  ucontext_t context_{}, lane_context_{};
  void* stack_ = nullptr;
  std::atomic<std::thread::id> thread_{};
  absl::Status status_;
  std::shared_ptr<collective::Gang> gang_;  // while suspended
  int64_t spent_ns_ = 0;                    // before the present turn
  int64_t turn_start_ = 0;                  // on the lane's clock
  // Guarded by the lane's mutex.
  bool woken_ = false;
  bool parked_ = false;  // off its stack, waiting for Wake
  bool over_ = false;
};

// Thread-safe. Work must end before the destructor.
class Lane {
 public:
  Lane();
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Runs `work` on a stack of its own, after what waits already.
  void Start(std::function<void(Fiber&)> work);
  // The plugin holds the lane's thread for something that others on the lane are to bring about: one more thread
  // serves.
  void Rescue();

 private:
  friend class Fiber;
  static void Enter(unsigned low, unsigned high);
  void Serve();
  // For what the fiber parked last waits for, once; true when there was something.
  bool LookOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Fiber* NewFiber() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !ready_.empty(); }

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<collective::Gang> awaited_ ABSL_GUARDED_BY(mutex_);  // by the fiber parked last
  std::deque<Fiber*> ready_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Fiber>> fibers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Fiber*> idle_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gangway::device::pjrt
