// Who has claimed how much of every device's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gangway/resource/cluster.h"

namespace gangway::resource {

// Claims are of logical buffers: so many bytes on each device of a list. Plain state, not thread-safe; must outlive the
// claims. Limits are bytes, 0: none known.
class MemoryBook {
 public:
  // What somebody's claims come to, on all devices together.
  struct Account {
    int64_t bytes = 0;
  };

  // A part of the memory, from Take on until the last reference goes. Shared by the arrays that share shards.
  class Claim {
   public:
    // `account`, where there is one, is charged with it.
    Claim(MemoryBook& book, std::vector<DeviceId> devices, int64_t bytes, std::shared_ptr<Account> account = nullptr)
        : book_(book), devices_(std::move(devices)), bytes_(bytes), account_(std::move(account)) {}
    ~Claim() { book_.Release(*this); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    const std::vector<DeviceId>& devices() const { return devices_; }
    int64_t bytes() const { return bytes_; }  // on each device
    int64_t total_bytes() const { return bytes_ * static_cast<int64_t>(devices_.size()); }
    bool taken() const { return taken_.has_value(); }
    // Idempotent. Also where it does not fit: asking before is the caller's part.
    void Take();

   private:
    friend class MemoryBook;
    MemoryBook& book_;
    const std::vector<DeviceId> devices_;
    const int64_t bytes_;
    const std::shared_ptr<Account> account_;
    std::optional<uint64_t> taken_;  // when, in resets of the book
  };

  struct DeviceMemory {
    int64_t limit = 0;
    int64_t claimed = 0;
  };

  // Called whenever memory became free.
  void OnRelease(std::function<void()> heard) { heard_ = std::move(heard); }

  // The next device, by number.
  void AddDevice(int64_t limit) { entries_.push_back({{limit, 0}, 0}); }
  // Its worker is gone, and with it all that was claimed; `limit`: what it has when it is back.
  void Reset(DeviceId device, int64_t limit);
  // The devices change places: what is claimed stays with the ids.
  void Swap(DeviceId a, DeviceId b) { std::swap(entries_[a.value()].memory.limit, entries_[b.value()].memory.limit); }
  const DeviceMemory& operator[](DeviceId device) const { return entries_[device.value()].memory; }

  // The least that any of the devices has when it is empty; 0 when that is not known of all.
  int64_t LeastLimit(absl::Span<const DeviceId> devices) const;
  // The first of the devices that has no such room left.
  std::optional<DeviceId> Full(absl::Span<const DeviceId> devices, int64_t bytes) const;
  // The first that could not hold as much if it were empty.
  std::optional<DeviceId> TooSmall(absl::Span<const DeviceId> devices, int64_t bytes) const;

 private:
  struct Entry {
    DeviceMemory memory;
    uint64_t last_reset = 0;
  };
  void Release(const Claim& claim);

  std::vector<Entry> entries_;
  uint64_t resets_ = 0;
  std::function<void()> heard_;
};

using ClaimRef = std::shared_ptr<MemoryBook::Claim>;

}  // namespace gangway::resource
