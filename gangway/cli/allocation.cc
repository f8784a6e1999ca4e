#include "gangway/cli/allocation.h"

#ifdef GANGWAY_JEMALLOC

#include <jemalloc/jemalloc.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

// Read by jemalloc before main; what the environment's MALLOC_CONF says is stronger. An arena for each core, since more
// of them only keep more; what nobody allocates again goes back even while the process does nothing.
extern "C" {
const char* malloc_conf =
    "percpu_arena:percpu,oversize_threshold:1048576,dirty_decay_ms:1000,background_thread:true,max_background_threads:"
    "1";
}

namespace gangway::cli {
namespace {

constexpr size_t kLarge = 1 << 20;
constexpr ssize_t kKeptMs = 1000;
// From this size on an arena would not wait until what was freed has decayed.
constexpr size_t kNeverAtOnce = size_t{1} << 62;

// jemalloc's own, from which memory comes as ever.
extent_hooks_t* system_hooks = nullptr;

// What the system has at all. jemalloc reserves without asking whether there is so much, and who then fills it is
// killed.
size_t AllMemory() {
  struct sysinfo info = {};
  if (sysinfo(&info) != 0) return SIZE_MAX;
  return (info.totalram + info.totalswap) * info.mem_unit;
}

void* NewHuge(extent_hooks_t*, void* wanted, size_t size, size_t alignment, bool* zero, bool* commit, unsigned arena) {
  static const size_t all_memory = AllMemory();
  if (size > all_memory) return nullptr;
  void* memory = system_hooks->alloc(system_hooks, wanted, size, alignment, zero, commit, arena);
  if (memory != nullptr) (void)madvise(memory, size, MADV_HUGEPAGE);
  return memory;
}

template <typename T>
T Ask(const std::string& name) {
  T value = {};
  size_t size = sizeof value;
  (void)mallctl(name.c_str(), &value, &size, nullptr, 0);
  return value;
}

template <typename T>
void Tell(const std::string& name, T value) {
  (void)mallctl(name.c_str(), nullptr, nullptr, &value, sizeof value);
}

}  // namespace

void KeepLargeMemory() {
  if (system_hooks != nullptr) return;
  void* large = std::malloc(kLarge);
  unsigned arena = 0;
  size_t size = sizeof arena;
  const bool found = large != nullptr && mallctl("arenas.lookup", &arena, &size, &large, sizeof large) == 0;
  std::free(large);
  if (!found) return;
  const std::string name = "arena." + std::to_string(arena);
  system_hooks = Ask<extent_hooks_t*>(name + ".extent_hooks");
  if (system_hooks == nullptr) return;
  static extent_hooks_t hooks = *system_hooks;
  hooks.alloc = &NewHuge;
  Tell(name + ".extent_hooks", &hooks);
  Tell(name + ".dirty_decay_ms", kKeptMs);
  Tell(name + ".oversize_threshold", kNeverAtOnce);
}

}  // namespace gangway::cli

#else

namespace gangway::cli {
void KeepLargeMemory() {}
}  // namespace gangway::cli

#endif
