// Turns an arrangement into instructions.
#pragma once

#include <vector>

#include "gangway/partition/arrangement.h"
#include "gangway/partition/context.h"

namespace gangway::partition {

// The shard of the result along dimension `dim`, split over `axes`; `shape` is the shard's but for that dimension.
// `sources` are local: shards of split ones, all of whole ones (reversed where they are mirrored), for made ones a
// scalar or an array that is already in place.
hlo::Instruction* EmitArrangement(const ArrangementPlan& plan, int64_t dim, const AxisList& axes, Shape shape,
                                  std::vector<hlo::Instruction*> sources, Context& context);

// Bytes received per device plus a charge per message, where one element along the dimension has `row_bytes`.
double ArrangementCost(const ArrangementPlan& plan, double row_bytes);

}  // namespace gangway::partition
