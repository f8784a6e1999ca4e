// Walks computations, all devices in lockstep. Internal to eval.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/eval/evaluate.h"
#include "gangway/eval/value.h"
#include "gangway/hlo/module.h"

namespace gangway::eval {

// A value on every device that takes part, in the order of the frame's devices.
using PerDevice = std::vector<Value>;

// One evaluation of a module. Not thread-safe.
class Interpreter {
 public:
  Interpreter(int64_t num_partitions, int64_t num_devices, const EvaluateOptions& options)
      : num_partitions_(num_partitions), num_devices_(num_devices), options_(options) {}

  // Runs a computation on some devices. arguments[p] is parameter p.
  absl::StatusOr<PerDevice> Run(const hlo::Computation& computation, absl::Span<const int64_t> devices,
                                std::vector<PerDevice> arguments);
  // One call of a computation whose operations know no device (reducers, comparators).
  absl::StatusOr<Value> RunOnOne(const hlo::Computation& computation, std::vector<Value> arguments);

  int64_t num_devices() const { return num_devices_; }
  int64_t num_partitions() const { return num_partitions_; }
  int64_t num_replicas() const { return num_devices_ / num_partitions_; }
  int64_t PartitionOf(int64_t device) const { return device % num_partitions_; }
  int64_t ReplicaOf(int64_t device) const { return device / num_partitions_; }
  const EvaluateOptions& options() const { return options_; }
  // State of rng-get-and-update-state, one per device.
  std::pair<uint64_t, uint64_t>& rng_state(int64_t device) { return rng_states_[device]; }

 private:
  absl::StatusOr<PerDevice> Apply(const hlo::Instruction& instruction, absl::Span<const int64_t> devices,
                                  const std::vector<PerDevice>& operands);

  int64_t num_partitions_;
  int64_t num_devices_;
  const EvaluateOptions& options_;
  int depth_ = 0;
  absl::flat_hash_map<int64_t, std::pair<uint64_t, uint64_t>> rng_states_;
};

}  // namespace gangway::eval
