// Collectives and partition ids as custom calls of the worker's collective library (device/HOSTED.md).
#pragma once

#include "absl/status/status.h"
#include "gangway/hlo/module.h"

namespace gangway::compile {

// Replaces every collective and partition-id of the module. Fails, with the instruction named, on reductions the
// library does not know and on forms it does not offer.
absl::Status HostCollectives(hlo::Module* module);

}  // namespace gangway::compile
