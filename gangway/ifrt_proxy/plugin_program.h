// Orders to a Pathways server in the form of programs: what pathwaysutils sends as an xla::ifrt::PluginProgram, a text
// in JSON. Served is the one that splits arrays in another way; profiles and checkpoints are made otherwise here.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla/python/ifrt/sharding.pb.h"

namespace gangway::ifrt_proxy {

// {"reshardRequest": {"donateInput": b, "outSharding": [{"devices": {"device_ids": [...]}, "memory_kind": "...",
// "xla_hlo_sharding": an OpSharding in base 64}, ...]}}
struct ReshardOrder {
  bool donate = false;
  std::vector<xla::ifrt::ShardingProto> to;  // one per argument
};

// INVALID_ARGUMENT when malformed; UNIMPLEMENTED, saying what to use instead, for an order of another kind.
absl::StatusOr<ReshardOrder> ParsePluginProgram(absl::string_view text);

}  // namespace gangway::ifrt_proxy
