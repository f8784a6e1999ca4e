// Groups of arrays that are laid out alike, as HLO's sharding texts name them: ` shard_as 7`, ` shard_like 7`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace gangway {

// The group of each leaf that the text has a sharding for; nullopt for leaves in none. Reads what ParseHloShardings
// accepts. HLO tells arrays that give a layout (as) from those that may refine it (like); here all of a group are
// alike.
std::vector<std::optional<int64_t>> ShardGroups(absl::string_view hlo_text);

}  // namespace gangway
