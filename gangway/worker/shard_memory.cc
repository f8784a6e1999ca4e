#include "gangway/worker/shard_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace gangway::worker {
namespace {

constexpr size_t kAlignment = 64;
// Memory for so many bytes would come fresh from the system.
constexpr size_t kLarge = 16 << 20;
constexpr size_t kMadeAtOnce = 4 << 20;  // pages, before a look whether they are still wanted

// Where the system does not know how (Linux before 5.14), they are made as ever.
void MakePages(const std::weak_ptr<void>& memory, size_t size) {
  for (size_t at = 0; at < size; at += kMadeAtOnce) {
    const ShardBytes bytes = memory.lock();
    if (bytes == nullptr) return;
    if (madvise(static_cast<char*>(bytes.get()) + at, std::min(kMadeAtOnce, size - at), MADV_POPULATE_WRITE) != 0)
      return;
  }
}

}  // namespace

absl::StatusOr<ShardBytes> NewShardBytes(size_t size) {
  ShardBytes bytes;
  if (size < SIZE_MAX - kAlignment) {
    bytes.reset(std::aligned_alloc(kAlignment, (size / kAlignment + 1) * kAlignment), std::free);
  }
  if (bytes == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory for ", size, " bytes"));
  return bytes;
}

void PrepareShardBytes(const ShardBytes& bytes, size_t size, Executor& helper) {
  if (size < kLarge) return;
  helper.Post([memory = std::weak_ptr<void>(bytes), size] { MakePages(memory, size); });
}

}  // namespace gangway::worker
