// The borders of manual computations (shard_map) in a program that is not partitioned. Internal to eval.
#pragma once

#include "absl/status/statusor.h"
#include "gangway/eval/op_table.h"

namespace gangway::eval {

// SPMDFullToShardShape and SPMDShardToFullShape when every device holds whole arrays outside the region and runs it on
// its own part: the first cuts out the device's shard along the axes that become manual, the second puts the shards of
// the devices along these axes together. The operand of the first and the result of the second carry the sharding.
absl::StatusOr<PerDevice> EnterManualRegion(const LockstepCall& call);
absl::StatusOr<PerDevice> LeaveManualRegion(const LockstepCall& call);

}  // namespace gangway::eval
