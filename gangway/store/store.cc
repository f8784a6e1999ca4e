#include "gangway/store/store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"

namespace gangway::store {

// A value to come, shared by all entries and launches that wait for it.
class PendingShard {
 public:
  Shard value;  // absent until settled
  std::vector<std::function<void()>> waiters;
};

Shard Shard::Pending() {
  Shard shard;
  shard.state_ = std::make_shared<PendingShard>();
  return shard;
}

bool Shard::pending() const {
  const auto* wait = std::get_if<std::shared_ptr<PendingShard>>(&state_);
  return wait != nullptr && !(*wait)->value.exists();
}

absl::StatusOr<device::BufferRef> Shard::Value() const {
  if (const auto* buffer = std::get_if<device::BufferRef>(&state_)) return *buffer;
  if (const auto* error = std::get_if<absl::Status>(&state_)) return *error;
  const auto* wait = std::get_if<std::shared_ptr<PendingShard>>(&state_);
  GW_CHECK(wait != nullptr && (*wait)->value.exists(), "value of a shard that is absent or pending");
  return (*wait)->value.Value();
}

void Shard::OnSettled(std::function<void()> callback) const {
  GW_CHECK(pending());
  std::get<std::shared_ptr<PendingShard>>(state_)->waiters.push_back(std::move(callback));
}

absl::StatusOr<LogicalBuffer*> Store::Create(BufferId id) {
  // Also while it is leaving: what fills it then must not revive it.
  const bool leaving = leaving_.contains(id);
  auto [it, added] = leaving ? std::make_pair(entries_.end(), false) : entries_.try_emplace(id);
  if (!added) return absl::AlreadyExistsError(absl::StrCat("buffer ", id.value(), " exists already"));
  it->second = std::make_unique<LogicalBuffer>(num_devices_);
  return it->second.get();
}

const LogicalBuffer* Store::Find(BufferId id) const {
  auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : it->second.get();
}

LogicalBuffer* Store::FindToFill(BufferId id) {
  if (auto it = entries_.find(id); it != entries_.end()) return it->second.get();
  auto it = leaving_.find(id);
  return it == leaving_.end() ? nullptr : it->second.get();
}

absl::Status Store::Put(BufferId id, int device, Shard shard) {
  LogicalBuffer* entry = FindToFill(id);
  if (entry == nullptr) return absl::NotFoundError(absl::StrCat("no buffer ", id.value()));
  if (device < 0 || device >= num_devices_) {
    return absl::InvalidArgumentError(absl::StrCat("buffer ", id.value(), ": no device ", device));
  }
  Shard& slot = (*entry)[device];
  if (slot.exists() && !slot.pending()) {
    return absl::AlreadyExistsError(absl::StrCat("buffer ", id.value(), " has its shard on device ", device));
  }
  Settle(slot, device, std::move(shard));
  DropIfComplete(id);
  return absl::OkStatus();
}

absl::Status Store::Poison(BufferId id, const absl::Status& error) {
  LogicalBuffer* entry = FindToFill(id);
  if (entry == nullptr) return absl::NotFoundError(absl::StrCat("no buffer ", id.value()));
  for (int device = 0; device < num_devices_; ++device) {
    Shard& slot = (*entry)[device];
    if (!slot.exists()) continue;
    Uncount(slot);
    Settle(slot, device, Shard(error));
  }
  DropIfComplete(id);
  return absl::OkStatus();
}

void Store::Free(BufferId id) {
  auto it = entries_.find(id);
  if (it == entries_.end()) return;
  leaving_[id] = std::move(it->second);
  entries_.erase(it);
  DropIfComplete(id);
}

void Store::DropIfComplete(BufferId id) {
  auto it = leaving_.find(id);
  if (it == leaving_.end()) return;
  for (const Shard& slot : *it->second) {
    if (slot.pending()) return;
  }
  for (const Shard& slot : *it->second) Uncount(slot);
  leaving_.erase(it);
}

void Store::Clear() {
  while (!entries_.empty()) Free(entries_.begin()->first);
  while (!leaving_.empty()) {
    BufferId id = leaving_.begin()->first;
    (void)Poison(id, absl::CancelledError(absl::StrCat("buffer ", id.value(), " will not be made: the worker stops")));
  }
}

void Store::Settle(Shard& slot, int device, Shard value) {
  auto* wait = std::get_if<std::shared_ptr<PendingShard>>(&slot.state_);
  std::shared_ptr<PendingShard> pending = wait != nullptr ? *wait : nullptr;
  Count(value, device);
  slot = value;
  if (pending == nullptr) return;
  GW_CHECK(!value.pending(), "a pending shard settles as a value or an error");
  pending->value = std::move(value);
  for (auto& waiter : std::exchange(pending->waiters, {})) waiter();
}

void Store::Count(const Shard& shard, int device) {
  const auto* buffer = std::get_if<device::BufferRef>(&shard.state_);
  if (buffer == nullptr || *buffer == nullptr) return;
  auto [it, is_first] = holders_.try_emplace(buffer->get(), Holders{0, device});
  ++it->second.entries;
  if (is_first) device_bytes_[device] += (*buffer)->size_bytes();
}

void Store::Uncount(const Shard& shard) {
  const auto* buffer = std::get_if<device::BufferRef>(&shard.state_);
  if (buffer == nullptr || *buffer == nullptr) return;
  auto it = holders_.find(buffer->get());
  if (it == holders_.end() || --it->second.entries > 0) return;
  device_bytes_[it->second.device] -= (*buffer)->size_bytes();
  holders_.erase(it);
}

}  // namespace gangway::store
