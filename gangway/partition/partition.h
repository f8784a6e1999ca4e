// From a module with complete shardings to the one program that every device runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"
#include "gangway/mesh/sharding.h"

namespace gangway::partition {

// An operation that had no plan for its sharding and runs whole on every device.
struct Fallback {
  std::string instruction;
  std::string reason;
  int64_t bytes = 0;  // of its result
};

struct Partitioned {
  std::unique_ptr<hlo::Module> module;
  Shardings parameters;  // one per leaf of the entry's parameters, as the per-device program takes them
  Shardings outputs;     // one per leaf of its result
  std::vector<Fallback> fallbacks;
};

// Instructions without shardings count as replicated. Collectives of the result name partitions by their number in the
// program's device assignment. Errors name the instruction. Pure.
absl::StatusOr<Partitioned> PartitionModule(const hlo::Module& module);

}  // namespace gangway::partition
