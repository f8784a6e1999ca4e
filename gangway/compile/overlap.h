// Orders a per-device program so that devices compute while collectives are on their way.
#pragma once

#include <memory>

#include "gangway/cost/machine.h"
#include "gangway/hlo/module.h"

namespace gangway::compile {

// The program with its collectives started as early and awaited as late as pays on that machine, scheduled; or null
// when no order that fits into the devices' memory (or into what the program takes as it stands) is faster. Computes
// the same, bit for bit. Each computation is ordered by itself: collectives do not run across the turns of a loop.
std::unique_ptr<hlo::Module> OverlapCollectives(const hlo::Module& module, const cost::Machine& machine);

}  // namespace gangway::compile
