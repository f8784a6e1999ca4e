// Makes a failing program smaller.
#pragma once

#include <functional>
#include <memory>

#include "gangway/hlo/module.h"

namespace gangway::equivalence {

// Whether a program still fails the way the first one did.
using StillFails = std::function<bool(const hlo::Module& module)>;

// A module for which `still_fails` holds, as it does for `module`, and from which no more of its parts can be left out:
// results, annotations, instructions of any computation (an operand, a parameter or a constant takes their place).
// Tries at most `max_tries` candidates.
std::unique_ptr<hlo::Module> Minimize(const hlo::Module& module, const StillFails& still_fails, int max_tries = 4000);

}  // namespace gangway::equivalence
