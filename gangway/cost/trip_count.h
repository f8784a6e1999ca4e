// How often a loop runs.
#pragma once

#include <cstdint>
#include <optional>

#include "gangway/hlo/instruction.h"

namespace gangway::cost {

// From `known_trip_count` of the backend config; else from a counter that starts at a constant, grows by a constant and
// is compared with one; else the constant that the condition compares with. Nullopt when none of these is there.
std::optional<int64_t> TripCount(const hlo::Instruction& loop);

}  // namespace gangway::cost
