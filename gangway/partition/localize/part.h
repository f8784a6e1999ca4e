// Parts of a split array at a place that is known at run time.
#pragma once

#include <vector>

#include "gangway/partition/context.h"

namespace gangway::partition {

// The scalars that a dynamic slice starts at, operands `first` on, as every device has them.
absl::StatusOr<std::vector<hlo::Instruction*>> ReplicatedStarts(const hlo::Instruction& instruction, int64_t first,
                                                                Context& context);

// min(max(x, low), high) of integers of any type, in s32; `low` is 0 or less.
hlo::Instruction* Clamped(hlo::Instruction* x, int64_t low, int64_t high, Context& context);
// A scalar from 0 to `limit`, the way dynamic slices read their starts.
hlo::Instruction* ClampedStart(hlo::Instruction* start, int64_t limit, Context& context);

// What the shard has of `size` elements of dimension `dim` from `start` (s32, in the whole array, clamped) on, in
// place; zeros for the others.
hlo::Instruction* OwnPart(hlo::Instruction* local, const Sharding& sharding, const Shape& global, int64_t dim,
                          hlo::Instruction* start, int64_t size, Context& context);

// The shard with what falls into it of an update (whole along `cut`, the split dimensions that it covers in part) at
// `starts` (s32, in the whole array, clamped along `cut`). Only a block of the update's size is rewritten.
hlo::Instruction* WithOwnPartOf(hlo::Instruction* update, hlo::Instruction* local, const Sharding& sharding,
                                const Shape& global, const std::vector<int64_t>& cut,
                                std::vector<hlo::Instruction*> starts, Context& context);

}  // namespace gangway::partition
