#include "gangway/ifrt_proxy/host_buffers.h"

#include "absl/strings/str_cat.h"

namespace gangway::ifrt_proxy {
namespace {

constexpr size_t kMostPromised = 8;

}  // namespace

absl::Status HostBuffers::Store(uint64_t handle, SharedBytes bytes) { return Insert(handle, {std::move(bytes), {}}); }

void HostBuffers::StoreError(uint64_t handle, absl::Status error) {
  (void)Insert(handle, {std::make_shared<const std::string>(), std::move(error)});
}

absl::Status HostBuffers::Insert(uint64_t handle, Entry entry) {
  OnArrival callback;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return absl::CancelledError("session closed");
    int64_t size = static_cast<int64_t>(entry.bytes->size());
    if (bytes_ + size > capacity_bytes_) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "host buffer ", handle, " of ", size, " bytes: the session already holds ", bytes_, " of ", capacity_bytes_));
    }
    if (!entries_.emplace(handle, std::move(entry)).second) {
      return absl::AlreadyExistsError(absl::StrCat("host buffer ", handle, " exists"));
    }
    bytes_ += size;
    promised_.erase(handle);
    if (auto it = waiting_.find(handle); it != waiting_.end()) {
      callback = std::move(it->second);
      waiting_.erase(it);
    }
  }
  if (callback) callback();
  return absl::OkStatus();
}

bool HostBuffers::Promise(uint64_t handle) {
  absl::MutexLock lock(&mutex_);
  return promised_.size() < kMostPromised && promised_.insert(handle).second;
}

bool HostBuffers::Contains(uint64_t handle) const {
  absl::MutexLock lock(&mutex_);
  return entries_.contains(handle);
}

void HostBuffers::WhenStored(uint64_t handle, OnArrival callback) {
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_ && !entries_.contains(handle)) {
      waiting_[handle] = std::move(callback);
      return;
    }
  }
  callback();
}

absl::StatusOr<SharedBytes> HostBuffers::Take(uint64_t handle) {
  absl::MutexLock lock(&mutex_);
  auto it = entries_.find(handle);
  if (it == entries_.end()) return absl::NotFoundError(absl::StrCat("host buffer ", handle, " not found"));
  Entry entry = std::move(it->second);
  entries_.erase(it);
  bytes_ -= static_cast<int64_t>(entry.bytes->size());
  if (!entry.error.ok()) return entry.error;
  return entry.bytes;
}

absl::StatusOr<SharedBytes> HostBuffers::Await(uint64_t handle, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || entries_.contains(handle); };
  mutex_.AwaitWithDeadline(absl::Condition(&ready), promised_.contains(handle) ? absl::InfiniteFuture() : deadline);
  auto it = entries_.find(handle);
  if (it == entries_.end()) {
    return closed_ ? absl::CancelledError("session closed")
                   : absl::DeadlineExceededError(absl::StrCat("host buffer ", handle, " did not arrive"));
  }
  if (!it->second.error.ok()) return it->second.error;
  return it->second.bytes;
}

void HostBuffers::Delete(uint64_t handle) { (void)Take(handle); }

void HostBuffers::Close() {
  absl::flat_hash_map<uint64_t, OnArrival> waiting;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    entries_.clear();
    bytes_ = 0;
    waiting.swap(waiting_);
  }
  for (auto& [handle, callback] : waiting) callback();
}

}  // namespace gangway::ifrt_proxy
