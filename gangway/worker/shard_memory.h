// Memory of shards that arrive from elsewhere.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "gangway/base/executor.h"

namespace gangway::worker {

// Aligned as devices like it.
using ShardBytes = std::shared_ptr<void>;

// RESOURCE_EXHAUSTED when there is none.
absl::StatusOr<ShardBytes> NewShardBytes(size_t size);

// Has `helper` make the pages of large memory ahead of who writes them, for as long as somebody wants it: to make and
// zero them takes about as long as to fill them. Where the memory was in use before nothing is left to be made.
void PrepareShardBytes(const ShardBytes& bytes, size_t size, Executor& helper);

}  // namespace gangway::worker
