// What collectives move, in bytes received per device by bandwidth-optimal (ring) algorithms.
#pragma once

#include <cstdint>

#include "gangway/hlo/instruction.h"

namespace gangway::cost {

struct CollectiveTraffic {
  int64_t group_size = 1;     // of the largest group
  double bytes_received = 0;  // per device, once
};

// With n devices a group, b bytes of the device's operands and r of its results:
//   all-gather (n-1)/n r; all-reduce 2 (n-1)/n b; reduce-scatter and all-to-all (n-1)/n b; collective-permute and
//   collective-broadcast b.
// A group of one moves nothing. Also takes the -start forms.
CollectiveTraffic TrafficOf(const hlo::Instruction& collective, int64_t num_devices);

// The opcode without "-start"; nullopt for what is no collective.
std::optional<hlo::Opcode> CollectiveKind(hlo::Opcode opcode);

}  // namespace gangway::cost
