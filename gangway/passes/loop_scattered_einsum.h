// A product whose result is summed and scattered over devices, as a loop: the sum of each part of the result travels
// around, and every device adds its share when the sum comes by (Wang et al., ASPLOS 2023). As many bytes are received,
// but no device holds the whole result. Even groups of four or more send halves of the parts in both directions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"

namespace gangway::passes {

struct ScatteredEinsum {
  hlo::Instruction *dot = nullptr, *scatter = nullptr;
  int64_t shards = 1;                     // devices of a group
  int64_t tile = 0;                       // elements of a part along the scattered dimension
  int64_t result_dim = 0;                 // the scattered dimension
  int64_t left_dim = -1, right_dim = -1;  // of the operands, where they have it; both where it is a batch dimension
};

// The dot's result is needed for the sum alone; nullopt for any other.
std::optional<ScatteredEinsum> AsScatteredEinsum(hlo::Instruction* scatter);

// Makes loops of those that are `worthwhile`, for programs of one replica.
absl::StatusOr<bool> LoopScatteredEinsums(hlo::Module& module,
                                          const std::function<bool(const ScatteredEinsum&)>& worthwhile);

// All of them.
absl::StatusOr<bool> RunLoopScatteredEinsums(hlo::Module& module);

}  // namespace gangway::passes
