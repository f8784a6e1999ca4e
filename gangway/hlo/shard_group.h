// Groups of values that are laid out alike are kept as the calls that sdy's round trip makes of them: propagation reads
// these alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "gangway/hlo/instruction.h"

namespace gangway::hlo {

inline constexpr absl::string_view kShardingGroup = "xla.sdy.ShardingGroup";
inline constexpr absl::string_view kShardingGroupId = "xla.sdy.sharding_group_id";

// Adds a call for every leaf of the instruction that is in a group, at the end of its computation.
void JoinShardGroups(Instruction* instruction, const std::vector<std::optional<int64_t>>& groups);

}  // namespace gangway::hlo
