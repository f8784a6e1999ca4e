// Collectives in two halves: one starts it, the other waits for its result, and what stands between runs beside it.
#pragma once

#include "gangway/hlo/module.h"

namespace gangway::compile {

// Splits every collective of a per-device program that moves something: all-reduce-start and -done and their like, in
// the place of the collective; async-start of a computation for those that HLO has no halves of.
void StartAndAwaitCollectives(hlo::Module* module);

}  // namespace gangway::compile
