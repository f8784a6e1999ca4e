// Prefix combinations along a dimension: cumulative sums, maxima and any other associative scan. Shards are scanned
// alone, and what comes before each of them is found from the shards' totals.
#pragma once

#include <cstdint>
#include <vector>

#include "gangway/partition/context.h"

namespace gangway::partition {

// Whether `combiner` (N values and N more to N) can be applied to whole arrays: elementwise operations of its
// parameters only.
bool IsArrayCombiner(const hlo::Computation& combiner);

struct ScanSpec {
  const hlo::Computation* combiner = nullptr;  // associative; the earlier elements come first
  int64_t dim = 0;
  bool reverse = false;  // element i combines i and all that follow
};

// Local shards of N arrays under `sharding` to their scans. Two combinations an element, one all-gather of totals where
// the dimension is split. What padding holds is of no consequence, but in reverse it must be neutral.
std::vector<hlo::Instruction*> EmitScan(const ScanSpec& spec, std::vector<hlo::Instruction*> arrays,
                                        const Sharding& sharding, Context& context);

}  // namespace gangway::partition
