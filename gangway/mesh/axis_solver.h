// Finds mesh axes that reproduce a placement given device by device.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gangway/mesh/mesh.h"

namespace gangway {

// The mesh's axes cut into parts of prime size, in every order of the prime factors (an axis of 6 is 2x3 or 3x2; at
// most 64 choices in all). Each choice is a list of parts that together index the mesh row-major.
std::vector<AxisList> PrimeParts(const Mesh& mesh);

// Parts, major to minor, along which CoordinateOf(position) is coordinates[position] for every position, `size` being
// the number of coordinates; nullopt when there are none.
std::optional<AxisList> AxesForCoordinates(const Mesh& mesh, const AxisList& parts,
                                           const std::vector<int64_t>& coordinates, int64_t size);

// Parts, in mesh order, that are exactly what positions of one group differ in: groups[position] names the group, each
// has `size` members. For axes of which only the set matters (manual, unreduced, replicated).
std::optional<AxisList> AxesForGroups(const Mesh& mesh, const AxisList& parts, const std::vector<int64_t>& groups,
                                      int64_t size);

}  // namespace gangway
