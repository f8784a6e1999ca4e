// Who sends to whom when the shards of one dimension move.
#pragma once

#include <cstdint>
#include <vector>

#include "gangway/partition/collectives.h"

namespace gangway::partition {

struct ShardMove {
  int64_t sender = 0, receiver = 0;  // places along the axes
};

// The same moves in every group of devices along `axes`.
DevicePairs ShardPairs(const Mesh& mesh, const AxisList& axes, const std::vector<ShardMove>& moves);

// Shard k + shift sends to shard k, where there are both.
DevicePairs ShiftPairs(const Mesh& mesh, const AxisList& axes, int64_t shift);

}  // namespace gangway::partition
