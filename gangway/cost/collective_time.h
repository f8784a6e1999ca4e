// How long a collective takes on links of two kinds: inside islands and between them.
#pragma once

#include <cstdint>

#include "gangway/cost/machine.h"
#include "gangway/hlo/instruction.h"

namespace gangway::cost {

struct CollectiveTime {
  double link_seconds = 0;     // inside islands
  double network_seconds = 0;  // between islands; comes before or after, not beside
  double total() const { return link_seconds + network_seconds; }
};

// One run. All-reduce, reduce-scatter and all-gather go ring by ring: inside islands, then each device with its like on
// the other islands. Also takes the -start forms. What is no collective, or has groups of one device, takes no time.
CollectiveTime TimeOf(const hlo::Instruction& collective, int64_t num_devices, const Machine& machine);

}  // namespace gangway::cost
