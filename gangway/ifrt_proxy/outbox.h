// Responses on their way to one client's stream.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "xla/python/ifrt_proxy/common/ifrt_service.pb.h"

namespace gangway::ifrt_proxy {

// Filled by the controller's loop, which must never wait for a slow client, and emptied by the session's writer thread.
// Thread-safe.
class Outbox {
 public:
  using Responses = std::deque<xla::ifrt::proxy::IfrtResponse>;

  void Add(xla::ifrt::proxy::IfrtResponse response) {
    absl::MutexLock lock(&mutex_);
    if (!closed_) responses_.push_back(std::move(response));
  }
  // Waits for responses; nullopt once closed and empty.
  std::optional<Responses> TakeAll() {
    absl::MutexLock lock(&mutex_);
    auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !responses_.empty(); };
    mutex_.Await(absl::Condition(&ready));
    if (responses_.empty()) return std::nullopt;
    return std::exchange(responses_, {});
  }
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

 private:
  absl::Mutex mutex_;
  Responses responses_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gangway::ifrt_proxy
