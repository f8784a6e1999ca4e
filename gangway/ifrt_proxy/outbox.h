// Responses on their way to one client's stream.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "xla/python/ifrt_proxy/common/ifrt_service.pb.h"

namespace gangway::ifrt_proxy {

// Filled by the controller's loop, which must never wait for a slow client, and emptied by the session's writer thread.
// Responses nobody waits for leave together, with the next urgent one or after a moment: each write of its own would
// wake the writer here and several threads of the client. Thread-safe.
class Outbox {
 public:
  using Responses = std::deque<xla::ifrt::proxy::IfrtResponse>;

  void Add(xla::ifrt::proxy::IfrtResponse response, bool urgent) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    responses_.push_back(std::move(response));
    urgent_ |= urgent || responses_.size() >= kMostWaiting;
  }
  // Waits for responses; nullopt once closed and empty.
  std::optional<Responses> TakeAll() {
    absl::MutexLock lock(&mutex_);
    auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !responses_.empty(); };
    auto urgent = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || urgent_; };
    mutex_.Await(absl::Condition(&some));
    mutex_.AwaitWithTimeout(absl::Condition(&urgent), kMoment);
    urgent_ = false;
    if (responses_.empty()) return std::nullopt;
    return std::exchange(responses_, {});
  }
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

 private:
  static constexpr size_t kMostWaiting = 64;
  static constexpr absl::Duration kMoment = absl::Milliseconds(2);

  absl::Mutex mutex_;
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;
  Responses responses_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gangway::ifrt_proxy
