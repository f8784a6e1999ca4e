// Turns a reshard plan into instructions.
#pragma once

#include "gangway/partition/collectives.h"
#include "gangway/partition/reshard_plan.h"

namespace gangway::partition {

// `value` holds the device's shard under the plan's first sharding; the result that under its last one.
hlo::Instruction* EmitReshard(const ReshardPlan& plan, CollectiveBuilder* collectives, hlo::Instruction* value);

}  // namespace gangway::partition
