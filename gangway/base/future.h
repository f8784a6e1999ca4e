// A value or error that arrives later. The runtime's one-shot hand-over between loops.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace gangway {

// What a future of "no value, only done or failed" carries.
struct Unit {
  friend bool operator==(Unit, Unit) = default;
};

template <typename T>
class Promise;

// Copyable handle; all copies see the same outcome. Thread-safe. Callbacks run on the thread that fulfils the promise,
// or at once on the caller's when the outcome is already there; they must not block: post to the owner's Executor
// instead.
template <typename T>
class Future {
 public:
  using Callback = std::function<void(const absl::StatusOr<T>&)>;

  // A future that is ready.
  explicit Future(absl::StatusOr<T> outcome) : state_(std::make_shared<State>()) {
    state_->outcome = std::move(outcome);
  }

  bool IsReady() const {
    absl::MutexLock lock(&state_->mutex);
    return state_->outcome.has_value();
  }

  void OnReady(Callback callback) const {
    {
      absl::MutexLock lock(&state_->mutex);
      if (!state_->outcome.has_value()) {
        state_->callbacks.push_back(std::move(callback));
        return;
      }
    }
    callback(*state_->outcome);  // never changes once set
  }

  // Blocks the caller until the outcome is there or `deadline` passes (DEADLINE_EXCEEDED naming `what`). For clients'
  // threads and tests; never on an executor's thread.
  absl::StatusOr<T> Await(absl::Time deadline, absl::string_view what) const {
    absl::MutexLock lock(&state_->mutex);
    auto ready = [this] { return state_->outcome.has_value(); };
    if (!state_->mutex.AwaitWithDeadline(absl::Condition(&ready), deadline)) {
      return absl::DeadlineExceededError(absl::StrCat("timed out waiting for ", what));
    }
    return *state_->outcome;
  }

 private:
  friend class Promise<T>;
  struct State {
    absl::Mutex mutex;
    std::optional<absl::StatusOr<T>> outcome;
    std::vector<Callback> callbacks;
  };
  explicit Future(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Shared: promise and futures live on different loops and none of them outlives the others by rule.
  std::shared_ptr<State> state_;
};

// The sending side; copyable, the first Set wins and later ones are ignored. Dropping every copy unset leaves waiters
// waiting, so owners must Set in their failure path too.
template <typename T>
class Promise {
 public:
  Promise() : state_(std::make_shared<typename Future<T>::State>()) {}

  Future<T> future() const { return Future<T>(state_); }

  void Set(absl::StatusOr<T> outcome) const {
    std::vector<typename Future<T>::Callback> callbacks;
    {
      absl::MutexLock lock(&state_->mutex);
      if (state_->outcome.has_value()) return;
      state_->outcome = std::move(outcome);
      callbacks.swap(state_->callbacks);
    }
    for (auto& callback : callbacks) callback(*state_->outcome);
  }

 private:
  std::shared_ptr<typename Future<T>::State> state_;
};

inline Future<Unit> ReadyFuture() { return Future<Unit>(absl::StatusOr<Unit>(Unit{})); }

}  // namespace gangway
