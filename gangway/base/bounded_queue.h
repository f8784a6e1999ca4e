// A queue with a bound: producers learn that it is full instead of filling the memory.
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace gangway {

// Thread-safe, many producers and consumers, first in first out.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // False when the queue is full or closed; the item is then left with the caller.
  bool TryPush(T& item) {
    absl::MutexLock lock(&mutex_);
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    return true;
  }

  // Waits for room; false when the deadline passes first or the queue is closed.
  bool Push(T item, absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    auto room = [this] { return closed_ || items_.size() < capacity_; };
    if (!mutex_.AwaitWithDeadline(absl::Condition(&room), deadline) || closed_) return false;
    items_.push_back(std::move(item));
    return true;
  }

  // Waits for an item; nullopt when the deadline passes first or the queue is closed and empty.
  std::optional<T> Pop(absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    auto ready = [this] { return closed_ || !items_.empty(); };
    if (!mutex_.AwaitWithDeadline(absl::Condition(&ready), deadline) || items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  // Ends all waits; what is queued can still be popped.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

  size_t size() const {
    absl::MutexLock lock(&mutex_);
    return items_.size();
  }

 private:
  const size_t capacity_;
  mutable absl::Mutex mutex_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gangway
