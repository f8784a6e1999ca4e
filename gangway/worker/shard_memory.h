// Memory of shards that arrive from elsewhere.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "gangway/base/executor.h"

namespace gangway::worker {

// Aligned as devices like it. Large memory that is let go is kept for the next of its size: to make and zero its pages
// takes about as long as to fill them. What is kept is the system's to take whenever it runs short, and at most
// kMostKept bytes. Thread-safe.
using ShardBytes = std::shared_ptr<void>;
inline constexpr size_t kMostKept = size_t{512} << 20;

// RESOURCE_EXHAUSTED when there is none.
absl::StatusOr<ShardBytes> NewShardBytes(size_t size);

// Has `helper` make the pages of large memory ahead of who writes them, for as long as somebody wants it.
void PrepareShardBytes(const ShardBytes& bytes, size_t size, Executor& helper);

}  // namespace gangway::worker
