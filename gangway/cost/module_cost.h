// What one run of a per-device program costs: loop bodies count as often as they run, of a conditional's branches the
// dearest.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gangway/hlo/module.h"

namespace gangway::cost {

struct CollectiveTotals {
  int64_t count = 0;          // instructions in the text
  double executed = 0;        // runs
  double bytes_received = 0;  // per device, all runs
};

struct ModuleCost {
  double flops = 0;
  double matmul_flops = 0;
  double bytes_accessed = 0;
  std::map<std::string, CollectiveTotals> collectives;  // by opcode name; groups of one device are left out
  std::vector<std::string> unknown_loops;               // loops counted once for want of a trip count

  double CollectiveBytes() const;
};

ModuleCost CostOf(const hlo::Module& module);

}  // namespace gangway::cost
