// Facts of replica groups that need no list of devices.
#pragma once

#include <cstdint>

#include "gangway/hlo/attributes.h"

namespace gangway::hlo {

// Members of the largest group, `num_devices` where the list is empty. Constant time but for explicit lists.
int64_t LargestGroup(const ReplicaGroupList& list, int64_t num_devices);

}  // namespace gangway::hlo
