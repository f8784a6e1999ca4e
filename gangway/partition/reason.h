// Why the partitioner added an instruction: the operation that wanted it and, for a reshard, between which shardings.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gangway/hlo/instruction.h"
#include "gangway/mesh/sharding.h"
#include "gangway/tensor/shape.h"

namespace gangway::partition {

struct Reason {
  std::string wanted_by;   // instruction of the whole program that was being localized
  hlo::OpMetadata source;  // of that instruction
  // A reshard: whose array moved (its name in the whole program, empty where it has none there), how it lay and how it
  // lies afterwards. Without them the operation itself needs the instruction: a halo, a sum of candidates.
  bool is_reshard = false;
  std::string value;
  Shape shape;  // global
  Sharding from, to;
  std::string plan;
  double cost = 0;  // ReshardPlan::Cost
  // Other versions of the array that existed and what starting from them would have cost.
  std::vector<std::pair<std::string, double>> others;
};

// Instructions carry the number of their reason in their metadata, which every later pass keeps.
hlo::OpMetadata WithReason(hlo::OpMetadata metadata, size_t number);
std::optional<size_t> ReasonOf(const hlo::OpMetadata& metadata);

}  // namespace gangway::partition
