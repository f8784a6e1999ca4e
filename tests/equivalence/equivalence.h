// Runs a program whole and partitioned and compares.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gangway/hlo/module.h"

namespace gangway::equivalence {

struct CheckOptions {
  uint64_t seed = 0;          // of the arguments
  double tolerance = 2e-5;    // of floats, relative to the largest magnitude of the array, at least 1
  bool propagate = true;      // complete the shardings first; otherwise they are taken as they are
  bool empty_shards = false;  // dimensions may be completed to more shards than they have elements
  bool passes = false;        // also run what the passes after partitioning make of the per-device program
};

// OK when the module evaluated on one device and its per-device program evaluated on config.num_partitions devices give
// the same results. The message says what differs and holds the per-device program.
absl::Status CheckEquivalent(const hlo::Module& module, const CheckOptions& options = {});

}  // namespace gangway::equivalence
