// Gathers arrays a second time instead of keeping them, when a program would not fit into its devices' memory.
#pragma once

#include <cstdint>
#include <memory>

#include "gangway/hlo/module.h"

namespace gangway::compile {

// For a per-device program that is estimated to take more than four fifths of `memory_bytes`: the same program in less
// memory, or null when there is none. Until it fits, combined all-gathers that wait through the fullest moment are
// taken apart, then of the gathered arrays (and what was only cast or turned after a gather) that do the largest is
// gathered again for those who read it afterwards.
std::unique_ptr<hlo::Module> GatherAgain(const hlo::Module& module, int64_t memory_bytes);

}  // namespace gangway::compile
