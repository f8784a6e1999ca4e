// Which computations control flow runs, in a form whose ends are easy to tie.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "gangway/hlo/module.h"

namespace gangway::propagate {

// The entry and, from there, bodies and conditions of while, branches of conditional, callees of call.
std::vector<hlo::Computation*> ControlComputations(const hlo::Module& module);

// Gives loop bodies, branches and the entry a root that only collects results: a tuple, or a copy of an array. What
// computed the result keeps its own sharding. An annotated root of the entry stays. Returns the copy that was added as
// the entry's root, or null.
hlo::Instruction* SeparateRoots(hlo::Module& module, const std::vector<hlo::Computation*>& computations);

}  // namespace gangway::propagate
