// Cheapest way through the states of one stage.
#pragma once

#include <vector>

#include "gangway/partition/reshard_plan.h"

namespace gangway::partition {

// Steps from view.from to view.to for an array of elements of `element_bytes`; partial results that the target has and
// the start has not are left to the caller. Never fails: where the search space is too large it gathers and slices.
std::vector<ReshardStep> SearchSteps(const DigitView& view, int element_bytes);

}  // namespace gangway::partition
