#include "gangway/base/strand.h"

#include <utility>

namespace gangway {

void Strand::Post(Task task) {
  {
    absl::MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    if (busy_) return;
    busy_ = true;
  }
  if (below_ != nullptr) {
    below_->Post([this] { RunOne(); });
  } else {
    Drain();
  }
}

bool Strand::InLoop() const { return runner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

void Strand::Drain() {
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      if (tasks_.empty()) {
        busy_ = false;
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
      runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    task();
    task = nullptr;  // what it captured goes while the turn is still ours
    runner_.store(std::thread::id(), std::memory_order_relaxed);
  }
}

// One task a turn, so that an executor below can interleave this loop with others.
void Strand::RunOne() {
  Task task;
  {
    absl::MutexLock lock(&mutex_);
    task = std::move(tasks_.front());
    tasks_.pop_front();
    runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  task();
  task = nullptr;
  runner_.store(std::thread::id(), std::memory_order_relaxed);
  {
    absl::MutexLock lock(&mutex_);
    busy_ = !tasks_.empty();
    if (!busy_) return;
  }
  below_->Post([this] { RunOne(); });
}

}  // namespace gangway
