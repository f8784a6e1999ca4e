#include "gangway/net/ucx/peer_memory.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"

namespace gangway::net {
namespace {

// Never zero, which is no guard.
uint64_t RandomWord() {
  std::random_device device;
  return uint64_t{device()} << 32 | device() | 1;
}

struct Card {
  char boot[16] = {};              // which start of which host
  uint64_t process_namespace = 0;  // in which the number below means something
  int64_t process = 0;
  uint64_t sample_address = 0;  // of a word of this process
  uint64_t sample = 0;
};
static_assert(sizeof(Card) == kMemoryCardBytes);

// Of this process; made anew each time, since a forked one has another number.
Card OwnCard() {
  static const uint64_t sample = RandomWord();
  Card card;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  boot.erase(std::remove(boot.begin(), boot.end(), '-'), boot.end());
  for (size_t i = 0; i < sizeof card.boot && 2 * i + 1 < boot.size(); ++i) {
    card.boot[i] = static_cast<char>(std::stoi(boot.substr(2 * i, 2), nullptr, 16));
  }
  struct stat of = {};
  if (!boot.empty() && stat("/proc/self/ns/pid", &of) == 0) card.process_namespace = of.st_ino;
  card.process = getpid();
  card.sample_address = reinterpret_cast<uint64_t>(&sample);
  card.sample = sample;
  return card;
}

}  // namespace

std::string MemoryCard() {
  const Card card = OwnCard();
  return std::string(reinterpret_cast<const char*>(&card), sizeof card);
}

MemoryGuard::MemoryGuard() : word_(RandomWord()) {}

std::optional<PeerMemory> PeerMemory::Of(absl::string_view bytes) {
  const Card own = OwnCard();
  Card card;
  if (bytes.size() != sizeof card) return std::nullopt;
  std::memcpy(&card, bytes.data(), sizeof card);
  const bool here = own.process_namespace != 0 && card.process_namespace == own.process_namespace &&
                    std::memcmp(card.boot, own.boot, sizeof own.boot) == 0;
  if (!here) return std::nullopt;
  const PeerMemory memory(static_cast<pid_t>(card.process));
  uint64_t word = 0;
  if (!memory.Read(card.sample_address, &word, sizeof word, card.sample_address, card.sample).ok()) return std::nullopt;
  return memory;
}

absl::Status PeerMemory::Read(uint64_t address, void* to, size_t size, uint64_t guard_address, uint64_t guard) const {
  uint64_t word = 0;
  const iovec here[] = {{to, size}, {&word, sizeof word}};
  const iovec there[] = {{reinterpret_cast<void*>(address), size},
                         {reinterpret_cast<void*>(guard_address), sizeof word}};
  const ssize_t read = process_vm_readv(process_, here, 2, there, 2, 0);
  if (read < 0 && errno != EFAULT && errno != ESRCH) {
    return absl::PermissionDeniedError(absl::StrCat("memory of process ", process_, ": ", std::strerror(errno)));
  }
  if (read != static_cast<ssize_t>(size + sizeof word) || word != guard) {
    return absl::UnavailableError(absl::StrCat("process ", process_, " no longer offers what was to be read"));
  }
  return absl::OkStatus();
}

}  // namespace gangway::net
