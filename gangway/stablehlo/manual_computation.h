// Entering and leaving a manual computation (shard_map): the four-step form of README.md.
#pragma once

#include "absl/status/statusor.h"
#include "gangway/stablehlo/op_context.h"

namespace gangway::stablehlo {

// The mesh axes `inner` that become manual inside, on top of those of the op's scope.
absl::StatusOr<ManualAxes> AddManualAxes(const OpContext& context, const MeshRef& mesh, const AxisList& inner);

// A whole array (sharded as `full` says) as its local part of shape `local`.
absl::StatusOr<hlo::Instruction*> EmitFullToShard(OpContext& context, hlo::Instruction* x, const Sharding& full,
                                                  const ManualAxes& manual, const Shape& local);
// The local part as the whole array of shape `whole`.
absl::StatusOr<hlo::Instruction*> EmitShardToFull(OpContext& context, hlo::Instruction* x, const Sharding& full,
                                                  const ManualAxes& manual, const Shape& whole);

}  // namespace gangway::stablehlo
