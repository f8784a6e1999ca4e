// The object store of one worker: which shards of which logical buffers it holds, in which state.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/device/device.h"
#include "gangway/net/message.h"

namespace gangway::store {

using net::BufferId;

class PendingShard;

// One shard: nothing (no shard on this device), on its way, there, or poisoned. A device buffer that is there may still
// be in the making by a launch that is queued; the device layer orders that.
class Shard {
 public:
  Shard() = default;
  Shard(device::BufferRef buffer) : state_(std::move(buffer)) {}  // NOLINT: a buffer is a shard
  Shard(absl::Status error) : state_(std::move(error)) {}         // NOLINT: so is an error
  static Shard Pending();

  bool exists() const { return !std::holds_alternative<std::monostate>(state_); }
  // True while the buffer is not there and no error is known; OnSettled tells when.
  bool pending() const;
  // The buffer, or the error it is poisoned with. Not for pending ones.
  absl::StatusOr<device::BufferRef> Value() const;
  // Calls back when pending() has become false; only for pending shards. The callback must not call into the store.
  void OnSettled(std::function<void()> callback) const;

 private:
  friend class Store;
  std::variant<std::monostate, device::BufferRef, absl::Status, std::shared_ptr<PendingShard>> state_;
};

// All shards of one logical buffer on this worker, by device. One look-up serves all devices of a launch.
using LogicalBuffer = absl::InlinedVector<Shard, 8>;

// Not thread-safe: belongs to the worker's loop. A reference to a buffer is the entry under its id; shards taken out of
// it (by launches that wait) live on their own.
class Store {
 public:
  explicit Store(int num_devices) : num_devices_(num_devices), device_bytes_(num_devices, 0) {}

  // A new entry whose shards are all absent. ALREADY_EXISTS when the id is in use. The pointer is valid until the next
  // Create or Free.
  absl::StatusOr<LogicalBuffer*> Create(BufferId id);
  // nullptr when unknown.
  const LogicalBuffer* Find(BufferId id) const;

  // Sets the shard on a device of an existing entry; a pending one settles, and whoever waits for it goes on.
  // INVALID_ARGUMENT when the device is out of range, ALREADY_EXISTS when that shard is settled already, NOT_FOUND when
  // the id is unknown.
  absl::Status Put(BufferId id, int device, Shard shard);
  // Every existing shard of it becomes `error`; NOT_FOUND when unknown.
  absl::Status Poison(BufferId id, const absl::Status& error);
  // Forgets the entry: Find knows it no more. While a shard of it is pending it can still be filled or poisoned, for
  // the launches that wait for it; then it goes.
  void Free(BufferId id);
  // Frees everything; what is pending settles as CANCELLED.
  void Clear();

  int64_t buffers() const { return static_cast<int64_t>(entries_.size() + leaving_.size()); }
  // Host size of all shards that are there, each device buffer once however many entries share it.
  int64_t bytes() const { return std::accumulate(device_bytes_.begin(), device_bytes_.end(), int64_t{0}); }
  // The same by device.
  const std::vector<int64_t>& device_bytes() const { return device_bytes_; }

 private:
  LogicalBuffer* FindToFill(BufferId id);
  void DropIfComplete(BufferId id);
  void Settle(Shard& slot, int device, Shard value);
  void Count(const Shard& shard, int device);
  void Uncount(const Shard& shard);

  const int num_devices_;
  using Entries = absl::flat_hash_map<BufferId, std::unique_ptr<LogicalBuffer>>;
  Entries entries_;
  Entries leaving_;  // freed, but with shards that launches wait for
  struct Holders {
    int entries = 0;
    int device = 0;
  };
  absl::flat_hash_map<const device::Buffer*, Holders> holders_;  // entries that share a device buffer
  std::vector<int64_t> device_bytes_;
};

}  // namespace gangway::store
