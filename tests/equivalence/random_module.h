// Small random programs with random shardings.
#pragma once

#include <cstdint>
#include <memory>

#include "gangway/hlo/module.h"

namespace gangway::equivalence {

struct RandomOptions {
  int instructions = 12;
  bool shard_everything = false;  // a random sharding on every instruction instead of on some
  bool control_flow = true;
  bool manual_regions = true;  // shard_map bodies: such a program runs on all its devices even when it is whole
};

// The same module for the same seed. Programs never fail when evaluated.
std::unique_ptr<hlo::Module> RandomModule(uint64_t seed, const RandomOptions& options);

}  // namespace gangway::equivalence
