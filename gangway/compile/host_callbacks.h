// Calls of a program to functions of its client, which the client registered with the program and the protocol serves.
#pragma once

#include "absl/status/status.h"
#include "gangway/hlo/module.h"

namespace gangway::compile {

// JAX's calls become gangway.host_callback (device/HOSTED.md). INVALID_ARGUMENT for one that the program, with `count`
// callbacks, does not have.
absl::Status NameHostCallbacks(hlo::Module* module, int count);

}  // namespace gangway::compile
