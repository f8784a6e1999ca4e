// A product with a gathered operand as a loop: every device multiplies the shard it has while the next one is on its
// way (Wang et al., Overlap Communication with Dependent Computation via Decomposition, ASPLOS 2023). As many bytes are
// received, but no device holds the whole operand. Even groups of four or more pass shards on in both directions at
// once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"

namespace gangway::passes {

struct GatheredEinsum {
  hlo::Instruction *gather = nullptr, *dot = nullptr;
  int64_t side = 0;         // the dot's operand that is gathered
  int64_t shards = 1;       // devices of a group
  int64_t tile = 0;         // elements of a shard along the gathered dimension
  int64_t other_dim = -1;   // of the other operand, contracted with the gathered one; -1: that one is free
  int64_t result_dim = -1;  // of the result, where it is free
};

// The dot's operand is gathered for it alone along a dimension that is contracted or free; nullopt for any other.
std::optional<GatheredEinsum> AsGatheredEinsum(hlo::Instruction* dot);

// Makes loops of those that are `worthwhile`, for programs of one replica.
absl::StatusOr<bool> LoopEinsums(hlo::Module& module, const std::function<bool(const GatheredEinsum&)>& worthwhile);

// All of them.
absl::StatusOr<bool> RunLoopEinsums(hlo::Module& module);

}  // namespace gangway::passes
