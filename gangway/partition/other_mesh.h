// From one mesh to another over the same devices: where both cut an array into the same tiles, one permute carries
// every tile to the devices that hold it afterwards.
#pragma once

#include <vector>

#include "gangway/mesh/sharding.h"
#include "gangway/partition/collectives.h"
#include "gangway/tensor/shape.h"

namespace gangway::partition {

// Ways to have dimensions in as many parts as `counts` says, by axes of `mesh`: `like` alone where it is one, otherwise
// one for each order in which the axes can be given out, up to four axes. None when the axes do not multiply to the
// counts.
std::vector<Sharding> SplitsInto(const DimVector& counts, const MeshRef& mesh, const Sharding& like);

// Both split every dimension into the same number of parts, over meshes of the same devices. Every device sends its
// tile to one device and receives one; a device that holds the right tile keeps it.
DevicePairs TilePairs(const Sharding& from, const Sharding& to);
// No device's tile changes.
bool InPlace(const DevicePairs& pairs);

// Numbers of parts of each dimension worth meeting at between two shardings over different meshes: those of either,
// what both have in common, and one.
std::vector<DimVector> MeetingCounts(const Sharding& from, const Sharding& to);

}  // namespace gangway::partition
