// Host buffers on their way between a client and an array: they travel beside the session's stream, under a handle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gangway/controller/byte_account.h"

namespace gangway::ifrt_proxy {

using SharedBytes = std::shared_ptr<const std::string>;  // shared: an RPC may still send what the session has dropped

// The buffers of one session. Thread-safe: filled and read by RPC threads, taken by the session.
class HostBuffers {
 public:
  using OnArrival = std::function<void()>;

  explicit HostBuffers(int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}
  ~HostBuffers();
  int64_t capacity() const { return capacity_bytes_; }
  // From now on what is kept and arrives counts there too, and may be refused by it. Once.
  void CountIn(std::shared_ptr<controller::ByteAccount> account);

  // Bytes of a buffer that is arriving count as if they were kept, until they are dropped or given to Store.
  // RESOURCE_EXHAUSTED when that is too much, CANCELLED after Close.
  class Arrival {
   public:
    explicit Arrival(HostBuffers& buffers) : buffers_(buffers) {}
    ~Arrival() { Drop(); }
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;
    absl::Status Add(int64_t bytes);
    void Drop();

   private:
    HostBuffers& buffers_;
    int64_t bytes_ = 0;
  };

  // A lookup of a buffer that is being answered. Its bytes count while they leave, whatever becomes of the buffer.
  class Leaving {
   public:
    explicit Leaving(HostBuffers& buffers) : buffers_(buffers) {}
    ~Leaving();
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;
    // Once: RESOURCE_EXHAUSTED when too many of the session are waited for.
    absl::Status Begin();
    // Once: RESOURCE_EXHAUSTED when too much leaves already.
    absl::Status Add(int64_t bytes);

   private:
    HostBuffers& buffers_;
    bool begun_ = false;
    int64_t bytes_ = 0;
  };

  // Keeps the bytes; RESOURCE_EXHAUSTED when the session holds too much already, ALREADY_EXISTS for a handle in use,
  // CANCELLED after Close.
  absl::Status Store(uint64_t handle, SharedBytes bytes);
  // An error that takes the buffer's place: whoever asks for it gets the error.
  void StoreError(uint64_t handle, absl::Status error);

  // A Store or StoreError will follow, however long it takes: no deadline ends a wait for the handle. False, and
  // nothing promised, when so many promises are open that the client's waiting threads would be a burden.
  bool Promise(uint64_t handle);

  bool Contains(uint64_t handle) const;
  // Calls back once: on the thread that stores the handle or closes the session, at once when that has happened, or in
  // Expire after the deadline.
  void WhenStored(uint64_t handle, OnArrival callback, absl::Time deadline = absl::InfiniteFuture());
  // Ends the waits whose deadline is over, unless what they wait for is promised. Every second or so, on any thread.
  void Expire(absl::Time now);

  // Removes and returns; NOT_FOUND when absent.
  absl::StatusOr<SharedBytes> Take(uint64_t handle);
  // Returns it without removing it; DEADLINE_EXCEEDED when it is not there, as after a wait for it, CANCELLED after
  // Close.
  absl::StatusOr<SharedBytes> Peek(uint64_t handle) const;
  void Delete(uint64_t handle);
  // Drops everything and wakes everybody.
  void Close();

 private:
  struct Entry {
    SharedBytes bytes;
    absl::Status error;
  };
  struct Wait {
    OnArrival callback;
    absl::Time deadline;
  };
  using Waits = absl::InlinedVector<Wait, 1>;  // of one handle
  absl::Status Insert(uint64_t handle, Entry entry);
  // Counted in `counter` from here on, or an error that there is no room.
  absl::Status TakeRoom(int64_t bytes, int64_t* counter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(int64_t bytes, int64_t* counter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t capacity_bytes_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<controller::ByteAccount> account_ ABSL_GUARDED_BY(mutex_);  // shared with other sessions; null: none
  absl::flat_hash_map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Waits> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<uint64_t> promised_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t arriving_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t leaving_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t lookups_ ABSL_GUARDED_BY(mutex_) = 0;  // that are being answered
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gangway::ifrt_proxy
