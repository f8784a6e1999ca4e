// What a device waited for longest.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gangway/cost/timeline.h"
#include "gangway/explain/explain.h"

namespace gangway::simulate {

// The longest first.
std::vector<cost::Wait> LongestWaits(const cost::Timeline& timeline, size_t most);

// "all-gather", whatever it was split into.
std::string KindOf(const cost::Wait& wait);
// Where the user wrote what wants it.
explain::Place PlaceOf(const cost::Wait& wait);

}  // namespace gangway::simulate
