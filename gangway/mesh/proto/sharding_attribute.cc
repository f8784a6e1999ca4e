#include "gangway/mesh/proto/sharding_attribute.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/mesh/proto/tile_assignment.h"

namespace gangway {

absl::StatusOr<Shardings> ReadShardingAttribute(absl::string_view text_or_bytes, absl::Span<const int64_t> rank_of_leaf,
                                                int64_t num_devices, const MeshRef& mesh) {
  if (absl::StartsWith(text_or_bytes, "{")) return ParseHloShardings(text_or_bytes, rank_of_leaf, num_devices, mesh);
  xla::OpSharding proto;
  if (!proto.ParseFromString(std::string(text_or_bytes))) {
    return absl::InvalidArgumentError("sharding: neither HLO text nor an OpSharding message");
  }
  const bool is_tuple = proto.type() == xla::OpSharding::TUPLE;
  const int64_t count = is_tuple ? proto.tuple_shardings_size() : 1;
  if (count != static_cast<int64_t>(rank_of_leaf.size())) {
    return absl::InvalidArgumentError(absl::StrCat("sharding: ", count, " for ", rank_of_leaf.size(), " arrays"));
  }
  Shardings shardings;
  for (int64_t i = 0; i < count; ++i) {
    GW_ASSIGN_OR_RETURN(TileAssignment tiles,
                        ReadTileAssignment(is_tuple ? proto.tuple_shardings(static_cast<int>(i)) : proto));
    GW_ASSIGN_OR_RETURN(Sharding sharding, FromTileAssignment(tiles, rank_of_leaf[i], num_devices, mesh));
    shardings.push_back(std::move(sharding));
  }
  return shardings;
}

std::vector<std::optional<int64_t>> ReadShardGroups(const xla::OpSharding& proto) {
  std::vector<std::optional<int64_t>> groups;
  const auto add = [&](const xla::OpSharding& leaf) {
    groups.push_back(leaf.is_shard_group() ? std::optional(leaf.shard_group_id()) : std::nullopt);
  };
  if (proto.type() != xla::OpSharding::TUPLE) add(proto);
  for (const xla::OpSharding& leaf : proto.tuple_shardings()) add(leaf);
  return groups;
}

std::vector<std::optional<int64_t>> ReadShardGroups(absl::string_view text_or_bytes) {
  if (absl::StartsWith(text_or_bytes, "{")) return ShardGroups(text_or_bytes);
  xla::OpSharding proto;
  if (!proto.ParseFromString(std::string(text_or_bytes))) return {};
  return ReadShardGroups(proto);
}

}  // namespace gangway
