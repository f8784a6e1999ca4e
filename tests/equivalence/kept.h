// Does a rewritten program compute what it computed before?
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "gangway/hlo/module.h"

namespace gangway::equivalence {

// Verifies `after` and evaluates both on `devices` devices with the same arguments, made from the seed. The message of
// an error holds the programs.
absl::Status CheckKept(const hlo::Module& before, const hlo::Module& after, int64_t devices, uint64_t seed);

}  // namespace gangway::equivalence
