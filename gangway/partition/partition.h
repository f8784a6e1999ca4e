// From a module with complete shardings to the one program that every device runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"
#include "gangway/mesh/sharding.h"
#include "gangway/partition/demands.h"
#include "gangway/partition/reason.h"

namespace gangway::partition {

// An operation that had no plan for its sharding and runs whole on every device.
struct Fallback {
  std::string instruction;
  std::string reason;
  int64_t bytes = 0;  // of its result
};

class ReshardPlanner;

// The answer to a program that asks how a value lies (jax.debug.inspect_array_sharding).
struct Inspection {
  std::string key;  // the program's name for the question
  Sharding sharding;
};

struct Partitioned {
  std::unique_ptr<hlo::Module> module;
  Shardings parameters;  // one per leaf of the entry's parameters, as the per-device program takes them
  Shardings outputs;     // one per leaf of its result
  std::vector<Fallback> fallbacks;
  Demands demands;  // what the instructions asked for
  std::vector<Inspection> inspections;
  std::vector<Reason> reasons;  // when asked for: the metadata of what was added names them (ReasonOf)
};

struct PartitionOptions {
  // Of an earlier run on the same module: reshards that several instructions need are shared. May be null.
  const Demands* before = nullptr;
  // Partial sums become whole at once where nothing wants them in parts. Otherwise, at equal bytes, what follows works
  // on parts and gathers later: less to compute and to keep, more messages.
  bool whole_sums = false;
  // Only splits that operands and results show, nothing brought about for the operation's sake.
  bool plain = false;
  bool record_reasons = false;
  // Remembers reshards from run to run; null: only within this one.
  ReshardPlanner* planner = nullptr;
};

// Instructions without shardings count as replicated. Collectives of the result name partitions by their number in the
// program's device assignment. Errors name the instruction. Pure.
absl::StatusOr<Partitioned> PartitionModule(const hlo::Module& module, const PartitionOptions& options = {});

}  // namespace gangway::partition
