// Reading the memory of another process of this host: one copy, where shared memory takes two.
//
// UCX does not do that between peers of which one may die (its cma transport is left out where errors are handled): a
// peer could go on reading memory that is already used for something else. Here every offer of memory carries a guard,
// a word of the owner's that changes when the offer is taken back; it is read after the memory was, by the same system
// call, so what was read under a guard that still stood is what was offered.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gangway::net {

// What a process tells its peers of itself: kMemoryCardBytes bytes that mean something on this host only.
inline constexpr size_t kMemoryCardBytes = 48;
std::string MemoryCard();

// A word that says whether what was offered under it may still be read. It must outlive its readers.
class MemoryGuard {
 public:
  MemoryGuard();
  uint64_t word() const { return word_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(&word_); }
  // Whatever is read from now on is not taken for what was offered.
  void Withdraw() { word_ = 0; }

 private:
  std::atomic<uint64_t> word_;
};

// The memory of the process that a card is of. Thread-safe.
class PeerMemory {
 public:
  // Nothing when it is on another host, in another process namespace, or may not be read.
  static std::optional<PeerMemory> Of(absl::string_view card);

  // Copies `size` bytes from `address` of the peer. PERMISSION_DENIED where the system does not let us, UNAVAILABLE
  // when the memory is gone or its guard does not stand: what is at `to` means nothing then.
  absl::Status Read(uint64_t address, void* to, size_t size, uint64_t guard_address, uint64_t guard) const;

 private:
  explicit PeerMemory(pid_t process) : process_(process) {}
  pid_t process_;
};

}  // namespace gangway::net
