#include "gangway/compile/einsum_loops.h"

#include <algorithm>

#include "gangway/base/status.h"
#include "gangway/compile/plan_weights.h"
#include "gangway/cost/collective_bytes.h"
#include "gangway/cost/operation_cost.h"

namespace gangway::compile {
namespace {

// `whole`: the array that a loop never holds, in `shards` parts; `beside`: what the loop holds in its stead.
EinsumCosts Costs(const hlo::Instruction& collective, const hlo::Instruction& dot, int64_t shards, int64_t whole,
                  double beside, bool overlaps) {
  const int64_t devices = collective.parent()->module()->config().num_partitions;
  const double received = cost::TrafficOf(collective, devices).bytes_received;
  const double work = cost::CostOf(dot).matmul_flops * kBytesPerFlop;
  const double parts = static_cast<double>(shards);
  EinsumCosts costs;
  costs.apart = received + work + kBytesPerCollective + kBytesPerHeldByte * static_cast<double>(whole);
  // The last part's work begins when all have come.
  const double both = overlaps ? std::max(received, work * (parts - 1) / parts) + work / parts : received + work;
  costs.looped = both + kBytesPerCollective * (parts - 1) + kBytesPerHeldByte * beside;
  return costs;
}

}  // namespace

EinsumCosts CostsOf(const passes::GatheredEinsum& einsum, bool overlaps) {
  const int64_t gathered = einsum.gather->shape().ByteSize();
  // Two shards, and the sum beside what is added to it.
  const double beside = 2 * static_cast<double>(gathered) / static_cast<double>(einsum.shards) +
                        static_cast<double>(einsum.dot->shape().ByteSize());
  return Costs(*einsum.gather, *einsum.dot, einsum.shards, gathered, beside, overlaps);
}

EinsumCosts CostsOf(const passes::ScatteredEinsum& einsum, bool overlaps) {
  // The sum that came, and what is added to it.
  const double beside = 2 * static_cast<double>(einsum.scatter->shape().ByteSize());
  return Costs(*einsum.scatter, *einsum.dot, einsum.shards, einsum.dot->shape().ByteSize(), beside, overlaps);
}

absl::StatusOr<bool> LoopWorthwhileEinsums(hlo::Module& module, bool overlaps) {
  const auto pays = [overlaps](const auto& einsum) {
    const EinsumCosts costs = CostsOf(einsum, overlaps);
    return costs.looped < costs.apart;
  };
  GW_ASSIGN_OR_RETURN(const bool gathered, passes::LoopEinsums(module, pays));
  GW_ASSIGN_OR_RETURN(const bool scattered, passes::LoopScatteredEinsums(module, pays));
  return gathered || scattered;
}

}  // namespace gangway::compile
