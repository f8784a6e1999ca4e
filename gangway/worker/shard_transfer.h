// One shard's bytes from a worker to another, over the fabric: in pieces, so that they spread over time and links.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/base/executor.h"
#include "gangway/net/fabric.h"
#include "gangway/net/message.h"
#include "gangway/worker/shard_memory.h"

namespace gangway::worker {

// Bytes of a dense array; INVALID_ARGUMENT where a message's type or dimensions make no sense.
absl::StatusOr<uint64_t> DenseBytes(DType dtype, const net::Dims& dims);

// The shard at `position` of what `task` makes: its name on the way.
struct ShardRoute {
  net::TaskId task;
  net::PeerId peer;  // the other end
  int position = 0;
};

// `bytes` stay valid while `owner` is held. `done` is called once, on any thread.
void SendShard(net::Fabric& fabric, const ShardRoute& route, std::shared_ptr<const void> owner,
               absl::Span<const std::byte> bytes, net::Fabric::Done done);

// Into memory of its own; `helper` runs ahead of a large shard's bytes and prepares that. `done` is called once, on any
// thread.
void ReceiveShard(net::Fabric& fabric, const ShardRoute& route, size_t size, Executor& helper,
                  std::function<void(absl::StatusOr<ShardBytes>)> done);

}  // namespace gangway::worker
