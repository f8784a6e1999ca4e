// HLO sharding texts: V1 and V2 tile assignments, V3 named axes, tuples.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/mesh/text_cursor.h"

namespace gangway {
namespace {

using Kind = TileAssignment::Kind;

// ` shard_as 1`, ` metadata={...}`: grouping and origins, which no placement depends on.
absl::Status SkipSuffixes(TextCursor* cursor) {
  while (true) {
    if (cursor->Consume("shard_as") || cursor->Consume("shard_like")) {
      GW_RETURN_IF_ERROR(cursor->Int().status());
    } else if (cursor->Consume("metadata=")) {
      GW_RETURN_IF_ERROR(cursor->SkipBalanced());
    } else {
      return absl::OkStatus();
    }
  }
}

absl::StatusOr<Kind> ConsumeKind(TextCursor* cursor) {
  for (auto [name, kind] : {std::pair("replicated", Kind::kReplicated), std::pair("manual", Kind::kManual),
                            std::pair("unknown", Kind::kUnknown), std::pair("unreduced", Kind::kUnreduced),
                            std::pair("maximal", Kind::kMaximal)}) {
    if (cursor->Consume(name)) return kind;
  }
  return cursor->Error("a kind of sharding");
}

// `[4,2]T(1,0)` after the `[` was read.
absl::Status ConsumeIota(TextCursor* cursor, std::vector<int64_t>* reshape, std::vector<int>* transpose) {
  GW_ASSIGN_OR_RETURN(*reshape, cursor->IntsUntil("]"));
  if (cursor->Consume("T(")) {
    GW_ASSIGN_OR_RETURN(std::vector<int64_t> perm, cursor->IntsUntil(")"));
    transpose->assign(perm.begin(), perm.end());
  } else {
    for (size_t i = 0; i < reshape->size(); ++i) transpose->push_back(static_cast<int>(i));
  }
  return absl::OkStatus();
}

absl::Status ConsumeTiles(TextCursor* cursor, TileAssignment* tiles) {
  tiles->kind = Kind::kTiled;
  GW_RETURN_IF_ERROR(cursor->Expect("["));
  GW_ASSIGN_OR_RETURN(tiles->dims, cursor->IntsUntil("]"));
  if (cursor->Consume("<=[")) {
    GW_RETURN_IF_ERROR(ConsumeIota(cursor, &tiles->iota_reshape, &tiles->iota_transpose));
  } else {
    do {
      GW_ASSIGN_OR_RETURN(int64_t device, cursor->Int());
      tiles->devices.push_back(device);
    } while (cursor->Consume(","));
  }
  if (cursor->Consume("last_tile_dim_replicate")) {
    tiles->last.push_back(Kind::kReplicated);
  } else if (cursor->Consume("last_tile_dims={")) {
    while (!cursor->Consume("}")) {
      if (!tiles->last.empty()) GW_RETURN_IF_ERROR(cursor->Expect(","));
      GW_ASSIGN_OR_RETURN(Kind kind, ConsumeKind(cursor));
      tiles->last.push_back(kind);
    }
  }
  return absl::OkStatus();
}

// One unnamed sharding in braces.
absl::StatusOr<TileAssignment> ConsumeTileAssignment(TextCursor* cursor) {
  GW_RETURN_IF_ERROR(cursor->Expect("{"));
  TileAssignment tiles;
  if (cursor->Consume("devices=")) {
    GW_RETURN_IF_ERROR(ConsumeTiles(cursor, &tiles));
  } else if (cursor->Consume("maximal_mesh[device_id=")) {
    tiles.kind = Kind::kMaximal;
    GW_ASSIGN_OR_RETURN(tiles.maximal_device, cursor->Int());
    GW_RETURN_IF_ERROR(cursor->Expect("]"));
  } else {
    GW_ASSIGN_OR_RETURN(tiles.kind, ConsumeKind(cursor));
    if (tiles.kind == Kind::kMaximal) {
      GW_RETURN_IF_ERROR(cursor->Expect("device="));
      GW_ASSIGN_OR_RETURN(tiles.maximal_device, cursor->Int());
    }
  }
  GW_RETURN_IF_ERROR(SkipSuffixes(cursor));
  GW_RETURN_IF_ERROR(cursor->Expect("}"));
  return tiles;
}

// `device_ids=([4,2]T(1,0))`, `device_ids=(1,0)` or `device_ids=[1,0]`.
absl::StatusOr<std::vector<int64_t>> ConsumeDeviceIds(TextCursor* cursor) {
  if (cursor->Consume("[")) return cursor->IntsUntil("]");
  GW_RETURN_IF_ERROR(cursor->Expect("("));
  if (!cursor->Consume("[")) return cursor->IntsUntil(")");
  TileAssignment iota;
  iota.kind = Kind::kTiled;
  GW_RETURN_IF_ERROR(ConsumeIota(cursor, &iota.iota_reshape, &iota.iota_transpose));
  GW_RETURN_IF_ERROR(cursor->Expect(")"));
  return iota.DeviceList();
}

// `'x'=2,'y'=2], device_ids=...` after `mesh[` was read. Reuses `known` when it is the same mesh.
absl::StatusOr<MeshRef> ConsumeMesh(TextCursor* cursor, const MeshRef& known) {
  GW_ASSIGN_OR_RETURN(std::vector<MeshAxis> axes, ConsumeMeshAxes(cursor, '\''));
  std::vector<int64_t> device_ids;
  if (cursor->Consume(", device_ids=")) {
    GW_ASSIGN_OR_RETURN(device_ids, ConsumeDeviceIds(cursor));
  }
  GW_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Make(std::move(axes), std::move(device_ids)));
  return known && *known == mesh ? known : std::make_shared<const Mesh>(std::move(mesh));
}

absl::StatusOr<Sharding> ConsumeNamed(TextCursor* cursor, const MeshRef& known) {
  GW_RETURN_IF_ERROR(cursor->Expect("{"));
  GW_RETURN_IF_ERROR(cursor->Expect("mesh["));
  Sharding sharding;
  GW_ASSIGN_OR_RETURN(sharding.mesh, ConsumeMesh(cursor, known));
  GW_RETURN_IF_ERROR(cursor->Expect(", ["));
  GW_ASSIGN_OR_RETURN(sharding.dims, ConsumeDims(cursor, '\'', *sharding.mesh));
  while (cursor->Consume(",")) {
    AxisList* list = nullptr;
    if (cursor->Consume("replicated=")) {
      list = &sharding.replicated;
    } else if (cursor->Consume("manual=")) {
      list = &sharding.manual;
    } else {
      GW_RETURN_IF_ERROR(cursor->Expect("unreduced="));
      list = &sharding.unreduced;
      for (Reduction reduction :
           {Reduction::kSum, Reduction::kMax, Reduction::kMin, Reduction::kProduct, Reduction::kAnd, Reduction::kOr}) {
        if (cursor->Consume(ReductionName(reduction))) sharding.reduction = reduction;
      }
    }
    GW_RETURN_IF_ERROR(cursor->Expect("{"));
    GW_ASSIGN_OR_RETURN(*list, ConsumeAxes(cursor, '\'', *sharding.mesh));
  }
  GW_RETURN_IF_ERROR(SkipSuffixes(cursor));
  GW_RETURN_IF_ERROR(cursor->Expect("}"));
  return sharding;
}

absl::StatusOr<Sharding> ConsumeSharding(TextCursor* cursor, int64_t rank, int64_t num_devices, const MeshRef& mesh) {
  if (cursor->Peek("{mesh[")) {
    GW_ASSIGN_OR_RETURN(Sharding sharding, ConsumeNamed(cursor, mesh));
    GW_RETURN_IF_ERROR(ValidateSharding(sharding, Shape(DType::kPred, DimVector(rank, 1))));
    return sharding;
  }
  GW_ASSIGN_OR_RETURN(TileAssignment tiles, ConsumeTileAssignment(cursor));
  return FromTileAssignment(tiles, rank, num_devices, mesh);
}

bool HasUserNames(const Mesh& mesh) {
  return std::any_of(mesh.axes().begin(), mesh.axes().end(),
                     [](const MeshAxis& axis) { return !absl::StartsWith(axis.name, "_"); });
}

}  // namespace

absl::StatusOr<TileAssignment> ParseTileAssignment(absl::string_view text) {
  TextCursor cursor(text);
  GW_ASSIGN_OR_RETURN(TileAssignment tiles, ConsumeTileAssignment(&cursor));
  GW_RETURN_IF_ERROR(cursor.ExpectEnd());
  return tiles;
}

absl::StatusOr<Shardings> ParseHloShardings(absl::string_view text, absl::Span<const int64_t> rank_of_leaf,
                                            int64_t num_devices, MeshRef mesh) {
  TextCursor cursor(text);
  Shardings shardings;
  if (cursor.Peek("{{") || cursor.Peek("{}")) {
    GW_RETURN_IF_ERROR(cursor.Expect("{"));
    while (!cursor.Consume("}")) {
      if (!shardings.empty()) GW_RETURN_IF_ERROR(cursor.Expect(","));
      const size_t leaf = shardings.size();
      // XLA gives an empty tuple one sharding; it has no leaf.
      const int64_t rank = leaf < rank_of_leaf.size() ? rank_of_leaf[leaf] : 0;
      if (leaf >= rank_of_leaf.size() && !(rank_of_leaf.empty() && leaf == 0)) {
        return absl::InvalidArgumentError(absl::StrCat("sharding for ", leaf + 1, " or more leaves of a shape with ",
                                                       rank_of_leaf.size(), ": ", text.substr(0, 200)));
      }
      GW_ASSIGN_OR_RETURN(Sharding sharding, ConsumeSharding(&cursor, rank, num_devices, mesh));
      shardings.push_back(std::move(sharding));
    }
    if (rank_of_leaf.empty()) shardings.clear();
  } else if (rank_of_leaf.size() != 1) {
    // One sharding for every leaf of a tuple: replicated, manual or maximal.
    for (int64_t rank : rank_of_leaf) {
      TextCursor again(text);
      GW_ASSIGN_OR_RETURN(Sharding sharding, ConsumeSharding(&again, rank, num_devices, mesh));
      shardings.push_back(std::move(sharding));
    }
    return shardings;
  } else {
    GW_ASSIGN_OR_RETURN(Sharding sharding, ConsumeSharding(&cursor, rank_of_leaf[0], num_devices, mesh));
    shardings.push_back(std::move(sharding));
  }
  GW_RETURN_IF_ERROR(SkipSuffixes(&cursor));
  GW_RETURN_IF_ERROR(cursor.ExpectEnd());
  if (shardings.size() != rank_of_leaf.size()) {
    return absl::InvalidArgumentError(absl::StrCat("sharding for ", shardings.size(), " leaves of a shape with ",
                                                   rank_of_leaf.size(), ": ", text.substr(0, 200)));
  }
  return shardings;
}

absl::StatusOr<MeshAndAxes> ParseMeshAndAxes(absl::string_view text) {
  TextCursor cursor(text);
  MeshAndAxes result;
  GW_RETURN_IF_ERROR(cursor.Expect("mesh["));
  GW_ASSIGN_OR_RETURN(result.mesh, ConsumeMesh(&cursor, nullptr));
  GW_RETURN_IF_ERROR(cursor.Expect("{"));
  GW_ASSIGN_OR_RETURN(result.axes, ConsumeAxes(&cursor, '\'', *result.mesh));
  GW_RETURN_IF_ERROR(cursor.ExpectEnd());
  for (size_t i = 0; i < result.axes.size(); ++i) {
    AxisList before(result.axes.begin(), result.axes.begin() + i);
    if (Overlaps(before, result.axes[i])) return absl::InvalidArgumentError("an axis is named twice");
  }
  return result;
}

std::string PrintHloShardings(const Shardings& shardings, bool is_tuple) {
  std::string text = absl::StrJoin(shardings, ", ", [](std::string* out, const Sharding& sharding) {
    absl::StrAppend(out, HasUserNames(*sharding.mesh) ? sharding.ToString() : ToTileAssignment(sharding).ToString());
  });
  return is_tuple ? absl::StrCat("{", text, "}") : text;
}

}  // namespace gangway
