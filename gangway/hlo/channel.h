// Channels of collectives: numbers that tell them apart.
#pragma once

#include <cstdint>

#include "gangway/hlo/module.h"

namespace gangway::hlo {

// Above all that the module uses; at least 1.
int64_t FirstFreeChannel(const Module& module);

}  // namespace gangway::hlo
