// What must hold of a program right after partitioning.
#pragma once

#include "absl/status/status.h"
#include "gangway/hlo/module.h"
#include "gangway/mesh/sharding.h"

namespace gangway::partition {

// Every shape is what its operands make of it; parameters and results are the shards that the border says (`whole` is
// the module that was partitioned); groups of every collective are disjoint, of one size and cover all partitions;
// transfers stay among the partitions; no two collectives share a channel. The first fault, with its instruction; an
// Internal error, because no program may lead to one. Linear in instructions, and in devices only where a collective
// lists them.
absl::Status VerifyPartitioned(const hlo::Module& per_device, const hlo::Module& whole, const Shardings& parameters,
                               const Shardings& outputs);

}  // namespace gangway::partition
