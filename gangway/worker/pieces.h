// Work that is over when its last piece is.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace gangway::worker {

// Calls `done` once, with the first error of any piece, on the thread that ends the last one. Any thread ends pieces.
class Pieces {
 public:
  using Done = std::function<void(const absl::Status&)>;

  Pieces(size_t count, Done done) : left_(count), done_(std::move(done)) {}

  void Ended(const absl::Status& status) {
    if (!status.ok()) {
      absl::MutexLock lock(&mutex_);
      status_.Update(status);
    }
    if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    absl::Status final_status;
    {
      absl::MutexLock lock(&mutex_);
      final_status = status_;
    }
    std::exchange(done_, nullptr)(final_status);
  }

 private:
  std::atomic<size_t> left_;
  Done done_;
  absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gangway::worker
