#include "gangway/worker/shard_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace gangway::worker {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = 2 << 20;
// Memory for so many bytes would come fresh from the system.
constexpr size_t kLarge = 16 << 20;
constexpr size_t kMadeAtOnce = 4 << 20;  // pages, before a look whether they are still wanted

// Large memory nobody uses, the longest unused first.
class Kept {
 public:
  void* Take(size_t size) {
    absl::MutexLock lock(&mutex_);
    for (auto it = blocks_.rbegin(); it != blocks_.rend(); ++it) {
      if (it->size != size) continue;
      void* memory = it->memory;
      bytes_ -= size;
      blocks_.erase(std::next(it).base());
      return memory;
    }
    return nullptr;
  }
  void Give(void* memory, size_t size) {
    // Its pages are the system's from now on, until they are written again.
    if (size > kMostKept || madvise(memory, size, MADV_FREE) != 0) return std::free(memory);
    std::deque<Block> ended;
    {
      absl::MutexLock lock(&mutex_);
      blocks_.push_back({memory, size});
      bytes_ += size;
      while (bytes_ > kMostKept) {
        bytes_ -= blocks_.front().size;
        ended.push_back(blocks_.front());
        blocks_.pop_front();
      }
    }
    for (const Block& block : ended) std::free(block.memory);
  }

 private:
  struct Block {
    void* memory;
    size_t size;
  };
  absl::Mutex mutex_;
  std::deque<Block> blocks_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

Kept& TheKept() {
  static Kept* kept = new Kept;  // for those who let go of memory while the process ends
  return *kept;
}

ShardBytes NewLarge(size_t size) {
  const size_t whole = (size + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = TheKept().Take(whole);
  if (memory == nullptr) {
    memory = std::aligned_alloc(kHugePage, whole);
    if (memory == nullptr) return nullptr;
    (void)madvise(memory, whole, MADV_HUGEPAGE);
  }
  return ShardBytes(memory, [whole](void* memory) { TheKept().Give(memory, whole); });
}

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
  if (size < kLarge) {
    bytes.reset(std::aligned_alloc(kAlignment, (size / kAlignment + 1) * kAlignment), std::free);
  } else if (size <= SIZE_MAX - kHugePage) {
    bytes = NewLarge(size);
  }
  if (bytes == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory for ", size, " bytes"));
  return bytes;
}

void PrepareShardBytes(const ShardBytes& bytes, size_t size, Executor& helper) {
  if (size < kLarge) return;
  helper.Post([memory = std::weak_ptr<void>(bytes), size] { MakePages(memory, size); });
}

}  // namespace gangway::worker
