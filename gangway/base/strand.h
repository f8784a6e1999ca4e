// A loop without a thread: tasks run one at a time, in the order posted, on whoever's thread is there.
#pragma once

#include <atomic>
#include <deque>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "gangway/base/executor.h"

namespace gangway {

// Owns objects like any loop does, but a task that is posted while the strand is idle runs at once on the poster's
// thread: a chain of messages crosses it without waking anybody, which on few cores is most of the cost of a small
// message. A task that is posted from within the strand, or while another thread drains it, waits for its turn, so
// nothing nests. Posters must not hold a lock that a task may want.
//
// With an executor below, tasks run there instead, still one at a time and in order: a deterministic loop for tests
// over a SimExecutor, which must outlive the strand.
class Strand final : public Executor {
 public:
  explicit Strand(Executor* below = nullptr) : below_(below) {}
  // Nobody posts any more; what was posted has run or is dropped with the executor below.
  ~Strand() override = default;

  void Post(Task task) override;
  bool InLoop() const override;

 private:
  void Drain();
  void RunOne();

  Executor* const below_;
  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;  // a thread drains, or a turn is posted below
  std::atomic<std::thread::id> runner_{};      // whose turn it is; only compared with the caller's own id
};

}  // namespace gangway
