#include "gangway/compile/einsum_loops.h"

#include <algorithm>

#include "gangway/compile/plan_weights.h"
#include "gangway/cost/collective_bytes.h"
#include "gangway/cost/operation_cost.h"

namespace gangway::compile {

EinsumCosts CostsOf(const passes::GatheredEinsum& einsum, bool overlaps) {
  const int64_t devices = einsum.gather->parent()->module()->config().num_partitions;
  const double received = cost::TrafficOf(*einsum.gather, devices).bytes_received;
  const double work = cost::CostOf(*einsum.dot).matmul_flops * kBytesPerFlop;
  const double shards = static_cast<double>(einsum.shards);
  const double held = static_cast<double>(einsum.gather->shape().ByteSize());
  EinsumCosts costs;
  costs.gathered = received + work + kBytesPerCollective + kBytesPerHeldByte * held;
  // The last shard's work begins when all have come.
  const double both = overlaps ? std::max(received, work * (shards - 1) / shards) + work / shards : received + work;
  // Two shards, and the sum beside what is added to it.
  const double held_by_loop = 2 * held / shards + static_cast<double>(einsum.dot->shape().ByteSize());
  costs.looped = both + kBytesPerCollective * (shards - 1) + kBytesPerHeldByte * held_by_loop;
  return costs;
}

absl::StatusOr<bool> LoopWorthwhileEinsums(hlo::Module& module, bool overlaps) {
  return passes::LoopEinsums(module, [overlaps](const passes::GatheredEinsum& einsum) {
    const EinsumCosts costs = CostsOf(einsum, overlaps);
    return costs.looped < costs.gathered;
  });
}

}  // namespace gangway::compile
