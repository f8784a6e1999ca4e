// HLO's sharding of one array as the proto that XLA, PJRT and the IFRT-proxy protocol share (xla_data.proto,
// OpSharding).
#pragma once

#include "absl/status/statusor.h"
#include "gangway/mesh/hlo_sharding.h"
#include "xla/xla_data.pb.h"

namespace gangway {

void WriteTileAssignment(const TileAssignment& tiles, xla::OpSharding* proto);
// Of one array, not of a tuple. Tile counts are positive; whether they fit a shape and a number of devices is for
// FromTileAssignment to say.
absl::StatusOr<TileAssignment> ReadTileAssignment(const xla::OpSharding& proto);

}  // namespace gangway
