// mhlo.sharding as programs carry it: HLO's text or, as XLA writes it for many devices, a serialized OpSharding.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/mesh/hlo_sharding.h"

namespace gangway {

// One sharding for each leaf; `rank_of_leaf`, `num_devices` and `mesh` as for ParseHloShardings.
absl::StatusOr<Shardings> ReadShardingAttribute(absl::string_view text_or_bytes, absl::Span<const int64_t> rank_of_leaf,
                                                int64_t num_devices, const MeshRef& mesh);

}  // namespace gangway
