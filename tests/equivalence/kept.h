// Does a rewritten program compute what it computed before?
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"

namespace gangway::equivalence {

// A random program (random_module.h), completed and partitioned, not cleaned up.
absl::StatusOr<std::unique_ptr<hlo::Module>> RandomPerDevice(uint64_t seed);

// Verifies `after` and evaluates both on `devices` devices with the same arguments, made from the seed. The message of
// an error holds the programs.
absl::Status CheckKept(const hlo::Module& before, const hlo::Module& after, int64_t devices, uint64_t seed);

}  // namespace gangway::equivalence
