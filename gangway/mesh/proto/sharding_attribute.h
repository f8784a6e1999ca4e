// mhlo.sharding as programs carry it: HLO's text or, as XLA writes it for many devices, a serialized OpSharding.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/mesh/shard_group.h"
#include "xla/xla_data.pb.h"

namespace gangway {

// One sharding for each leaf; `rank_of_leaf`, `num_devices` and `mesh` as for ParseHloShardings.
absl::StatusOr<Shardings> ReadShardingAttribute(absl::string_view text_or_bytes, absl::Span<const int64_t> rank_of_leaf,
                                                int64_t num_devices, const MeshRef& mesh);

// The group of each leaf (mesh/shard_group.h); none where the attribute is no sharding.
std::vector<std::optional<int64_t>> ReadShardGroups(absl::string_view text_or_bytes);
std::vector<std::optional<int64_t>> ReadShardGroups(const xla::OpSharding& proto);

}  // namespace gangway
