#include "gangway/resource/memory_book.h"

#include <algorithm>
#include <limits>

namespace gangway::resource {

void MemoryBook::Claim::Take() {
  if (taken_.has_value()) return;
  taken_ = book_.resets_;
  if (account_ != nullptr) account_->bytes += total_bytes();
  for (DeviceId device : devices_) book_.entries_[device.value()].memory.claimed += bytes_;
}

void MemoryBook::Release(const Claim& claim) {
  if (!claim.taken_.has_value()) return;
  if (claim.account_ != nullptr) claim.account_->bytes -= claim.total_bytes();
  for (DeviceId device : claim.devices_) {
    Entry& entry = entries_[device.value()];
    if (entry.last_reset <= *claim.taken_) entry.memory.claimed -= claim.bytes_;
  }
  if (heard_) heard_();
}

void MemoryBook::Reset(DeviceId device, int64_t limit) {
  entries_[device.value()] = {{limit, 0}, ++resets_};
  if (heard_) heard_();
}

int64_t MemoryBook::LeastLimit(absl::Span<const DeviceId> devices) const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (DeviceId id : devices) least = std::min(least, (*this)[id].limit);
  return devices.empty() ? 0 : least;
}

std::optional<DeviceId> MemoryBook::Full(absl::Span<const DeviceId> devices, int64_t bytes) const {
  for (DeviceId id : devices) {
    const DeviceMemory& memory = (*this)[id];
    if (memory.limit > 0 && memory.claimed + bytes > memory.limit) return id;
  }
  return std::nullopt;
}

std::optional<DeviceId> MemoryBook::TooSmall(absl::Span<const DeviceId> devices, int64_t bytes) const {
  for (DeviceId id : devices) {
    if ((*this)[id].limit > 0 && bytes > (*this)[id].limit) return id;
  }
  return std::nullopt;
}

}  // namespace gangway::resource
