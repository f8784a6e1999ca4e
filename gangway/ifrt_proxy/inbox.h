// Requests read from one client's stream, handed to the controller's loop in bunches.
#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "gangway/base/executor.h"
#include "gangway/ifrt_proxy/session.h"

namespace gangway::ifrt_proxy {

// One wake-up of the loop serves all requests that arrived meanwhile. Bounded: the reader waits while the loop is far
// behind, so that back-pressure reaches the client through the stream. Thread-safe; shared by the reader and by tasks
// posted to the loop.
class Inbox : public std::enable_shared_from_this<Inbox> {
 public:
  Inbox(std::shared_ptr<Session> session, Executor& loop, size_t capacity)
      : session_(std::move(session)), loop_(loop), capacity_(capacity) {}

  void Add(std::unique_ptr<IfrtRequest> request) {
    {
      absl::MutexLock lock(&mutex_);
      auto room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return requests_.size() < capacity_; };
      mutex_.Await(absl::Condition(&room));
      requests_.push_back(std::move(request));
      if (std::exchange(scheduled_, true)) return;
    }
    loop_.Post([self = shared_from_this()] { self->Deliver(); });
  }

 private:
  void Deliver() {
    std::deque<std::unique_ptr<IfrtRequest>> requests;
    {
      absl::MutexLock lock(&mutex_);
      requests.swap(requests_);
      scheduled_ = false;
    }
    for (auto& request : requests) session_->Handle(std::move(request));
  }

  const std::shared_ptr<Session> session_;
  Executor& loop_;
  const size_t capacity_;
  absl::Mutex mutex_;
  std::deque<std::unique_ptr<IfrtRequest>> requests_ ABSL_GUARDED_BY(mutex_);
  bool scheduled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gangway::ifrt_proxy
