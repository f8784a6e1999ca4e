// A program of one device needs no annotation and no border.
#pragma once

#include "gangway/hlo/module.h"

namespace gangway::compile {

// Removes shardings, sharding calls and the borders of manual regions; the partition id is 0.
void StripShardings(hlo::Module* module);

}  // namespace gangway::compile
