#include "gangway/ifrt_proxy/host_buffers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway::ifrt_proxy {
namespace {

constexpr size_t kMostPromised = 8;
// Clients have a thread for each.
constexpr int64_t kMostLookups = 1 << 15;
constexpr size_t kMostBuffers = 1 << 20;  // with or without bytes

}  // namespace

absl::Status HostBuffers::Store(uint64_t handle, SharedBytes bytes) { return Insert(handle, {std::move(bytes), {}}); }

void HostBuffers::StoreError(uint64_t handle, absl::Status error) {
  (void)Insert(handle, {std::make_shared<const std::string>(), std::move(error)});
}

HostBuffers::~HostBuffers() { Close(); }

void HostBuffers::CountIn(std::shared_ptr<controller::ByteAccount> account) {
  absl::MutexLock lock(&mutex_);
  account_ = std::move(account);
  if (account_ != nullptr) account_->AddAnyway(bytes_ + arriving_);
}

absl::Status HostBuffers::TakeRoom(int64_t bytes, int64_t* counter) {
  if (closed_) return absl::CancelledError("session closed");
  if (bytes > capacity_bytes_ - bytes_ - arriving_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes: the session already holds ", bytes_ + arriving_, " of ", capacity_bytes_));
  }
  if (account_ != nullptr) GW_RETURN_IF_ERROR(account_->Add(bytes));
  *counter += bytes;
  return absl::OkStatus();
}

void HostBuffers::GiveBack(int64_t bytes, int64_t* counter) {
  *counter -= bytes;
  if (account_ != nullptr) account_->Remove(bytes);
}

absl::Status HostBuffers::Arrival::Add(int64_t bytes) {
  absl::MutexLock lock(&buffers_.mutex_);
  GW_RETURN_IF_ERROR(buffers_.TakeRoom(bytes, &buffers_.arriving_));
  bytes_ += bytes;
  return absl::OkStatus();
}

void HostBuffers::Arrival::Drop() {
  absl::MutexLock lock(&buffers_.mutex_);
  buffers_.GiveBack(std::exchange(bytes_, 0), &buffers_.arriving_);
}

absl::Status HostBuffers::Leaving::Begin() {
  absl::MutexLock lock(&buffers_.mutex_);
  if (buffers_.lookups_ >= kMostLookups) {
    return absl::ResourceExhaustedError(absl::StrCat("already ", kMostLookups, " lookups of the session wait"));
  }
  begun_ = true;
  ++buffers_.lookups_;
  return absl::OkStatus();
}

absl::Status HostBuffers::Leaving::Add(int64_t bytes) {
  absl::MutexLock lock(&buffers_.mutex_);
  if (bytes > buffers_.capacity_bytes_ - buffers_.leaving_) {
    return absl::ResourceExhaustedError(absl::StrCat(bytes, " bytes: already ", buffers_.leaving_, " of ",
                                                     buffers_.capacity_bytes_, " leave the session"));
  }
  buffers_.leaving_ += bytes;
  bytes_ += bytes;
  return absl::OkStatus();
}

HostBuffers::Leaving::~Leaving() {
  absl::MutexLock lock(&buffers_.mutex_);
  buffers_.leaving_ -= bytes_;
  if (begun_) --buffers_.lookups_;
}

absl::Status HostBuffers::Insert(uint64_t handle, Entry entry) {
  Waits waits;
  {
    absl::MutexLock lock(&mutex_);
    const int64_t size = static_cast<int64_t>(entry.bytes->size());
    if (entries_.contains(handle)) return absl::AlreadyExistsError(absl::StrCat("host buffer ", handle, " exists"));
    if (entries_.size() >= kMostBuffers) {
      return absl::ResourceExhaustedError(
          absl::StrCat("host buffer ", handle, ": the session already holds ", kMostBuffers, " buffers"));
    }
    GW_RETURN_IF_ERROR_WITH(TakeRoom(size, &bytes_), absl::StrCat("host buffer ", handle));
    entries_.emplace(handle, std::move(entry));
    promised_.erase(handle);
    if (auto it = waiting_.find(handle); it != waiting_.end()) {
      waits = std::move(it->second);
      waiting_.erase(it);
    }
  }
  for (const Wait& wait : waits) wait.callback();
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

void HostBuffers::WhenStored(uint64_t handle, OnArrival callback, absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_ && !entries_.contains(handle)) {
      waiting_[handle].push_back({std::move(callback), deadline});
      return;
    }
  }
  callback();
}

void HostBuffers::Expire(absl::Time now) {
  std::vector<OnArrival> over;
  {
    absl::MutexLock lock(&mutex_);
    absl::erase_if(waiting_, [&](auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      auto& [handle, waits] = entry;
      if (promised_.contains(handle)) return false;
      auto late = std::partition(waits.begin(), waits.end(), [now](const Wait& wait) { return wait.deadline > now; });
      for (auto it = late; it != waits.end(); ++it) over.push_back(std::move(it->callback));
      waits.erase(late, waits.end());
      return waits.empty();
    });
  }
  for (const OnArrival& callback : over) callback();
}

absl::StatusOr<SharedBytes> HostBuffers::Take(uint64_t handle) {
  absl::MutexLock lock(&mutex_);
  auto it = entries_.find(handle);
  if (it == entries_.end()) return absl::NotFoundError(absl::StrCat("host buffer ", handle, " not found"));
  Entry entry = std::move(it->second);
  entries_.erase(it);
  GiveBack(static_cast<int64_t>(entry.bytes->size()), &bytes_);
  if (!entry.error.ok()) return entry.error;
  return entry.bytes;
}

absl::StatusOr<SharedBytes> HostBuffers::Peek(uint64_t handle) const {
  absl::MutexLock lock(&mutex_);
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
  absl::flat_hash_map<uint64_t, Waits> waiting;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    entries_.clear();
    GiveBack(bytes_, &bytes_);
    waiting.swap(waiting_);
  }
  for (const auto& [handle, waits] : waiting) {
    for (const Wait& wait : waits) wait.callback();
  }
}

}  // namespace gangway::ifrt_proxy
