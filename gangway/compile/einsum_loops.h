// Which products with gathered operands or scattered results become loops (passes/loop_einsum.h,
// passes/loop_scattered_einsum.h): a question of cost.
#pragma once

#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"
#include "gangway/passes/loop_einsum.h"
#include "gangway/passes/loop_scattered_einsum.h"

namespace gangway::compile {

// What a product costs in moved bytes, as plan_search.h weighs them, with its collective apart and as a loop.
struct EinsumCosts {
  double apart = 0, looped = 0;
};

// `overlaps`: devices multiply while shards are on their way.
EinsumCosts CostsOf(const passes::GatheredEinsum& einsum, bool overlaps);
EinsumCosts CostsOf(const passes::ScatteredEinsum& einsum, bool overlaps);

// Of a per-device program.
absl::StatusOr<bool> LoopWorthwhileEinsums(hlo::Module& module, bool overlaps);

}  // namespace gangway::compile
