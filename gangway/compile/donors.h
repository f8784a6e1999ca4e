// Which donated arguments a program takes.
#pragma once

#include "gangway/hlo/module.h"

namespace gangway::compile {

// A donated argument is of use only where an output of its size can take its memory; the module's other donors are
// dropped, and their arrays survive, as in XLA. Of a per-device module.
void DropUselessDonors(hlo::Module* module);

}  // namespace gangway::compile
