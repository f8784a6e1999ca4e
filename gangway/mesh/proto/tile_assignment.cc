#include "gangway/mesh/proto/tile_assignment.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway {
namespace {

using Kind = TileAssignment::Kind;
using xla::OpSharding;

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(absl::StrCat("sharding: ", what)); }

OpSharding::Type TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kReplicated:
      return OpSharding::REPLICATED;
    case Kind::kMaximal:
      return OpSharding::MAXIMAL;
    case Kind::kTiled:
      return OpSharding::OTHER;
    case Kind::kManual:
      return OpSharding::MANUAL;
    case Kind::kUnknown:
      return OpSharding::UNKNOWN;
    case Kind::kUnreduced:
      return OpSharding::UNREDUCED;
  }
  return OpSharding::REPLICATED;
}

absl::StatusOr<Kind> KindOfType(OpSharding::Type type) {
  for (Kind kind : {Kind::kReplicated, Kind::kMaximal, Kind::kTiled, Kind::kManual, Kind::kUnknown, Kind::kUnreduced}) {
    if (TypeOf(kind) == type) return kind;
  }
  return Wrong(absl::StrCat("type ", static_cast<int>(type)));
}

}  // namespace

void WriteTileAssignment(const TileAssignment& tiles, OpSharding* proto) {
  proto->set_type(TypeOf(tiles.kind));
  if (tiles.kind == Kind::kMaximal) {
    proto->add_tile_assignment_dimensions(1);
    proto->add_tile_assignment_devices(tiles.maximal_device);
    return;
  }
  proto->mutable_tile_assignment_dimensions()->Assign(tiles.dims.begin(), tiles.dims.end());
  proto->mutable_tile_assignment_devices()->Assign(tiles.devices.begin(), tiles.devices.end());
  proto->mutable_iota_reshape_dims()->Assign(tiles.iota_reshape.begin(), tiles.iota_reshape.end());
  proto->mutable_iota_transpose_perm()->Assign(tiles.iota_transpose.begin(), tiles.iota_transpose.end());
  if (tiles.last.size() == 1 && tiles.last[0] == Kind::kReplicated) {
    proto->set_replicate_on_last_tile_dim(true);
    return;
  }
  for (Kind kind : tiles.last) proto->add_last_tile_dims(TypeOf(kind));
}

absl::StatusOr<TileAssignment> ReadTileAssignment(const OpSharding& proto) {
  TileAssignment tiles;
  GW_ASSIGN_OR_RETURN(tiles.kind, KindOfType(proto.type()));
  if (tiles.kind == Kind::kMaximal) {
    if (proto.tile_assignment_devices_size() != 1) return Wrong("maximal on one device only");
    tiles.maximal_device = proto.tile_assignment_devices(0);
    return tiles;
  }
  if (tiles.kind != Kind::kTiled) return tiles;
  tiles.dims.assign(proto.tile_assignment_dimensions().begin(), proto.tile_assignment_dimensions().end());
  if (std::any_of(tiles.dims.begin(), tiles.dims.end(), [](int64_t tiles) { return tiles < 1; })) {
    return Wrong("a tile count below 1");
  }
  tiles.devices.assign(proto.tile_assignment_devices().begin(), proto.tile_assignment_devices().end());
  tiles.iota_reshape.assign(proto.iota_reshape_dims().begin(), proto.iota_reshape_dims().end());
  tiles.iota_transpose.assign(proto.iota_transpose_perm().begin(), proto.iota_transpose_perm().end());
  if (proto.replicate_on_last_tile_dim()) tiles.last.push_back(Kind::kReplicated);
  for (int type : proto.last_tile_dims()) {
    GW_ASSIGN_OR_RETURN(Kind kind, KindOfType(static_cast<OpSharding::Type>(type)));
    tiles.last.push_back(kind);
  }
  if (tiles.last.size() > tiles.dims.size()) return Wrong("more subgroups than dimensions");
  return tiles;
}

}  // namespace gangway
