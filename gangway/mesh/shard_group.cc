#include "gangway/mesh/shard_group.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace gangway {
namespace {

// The number after ` shard_as ` or ` shard_like ` that `rest` starts with.
std::optional<int64_t> GroupAt(absl::string_view rest) {
  if (!absl::ConsumePrefix(&rest, "shard_as ") && !absl::ConsumePrefix(&rest, "shard_like ")) return std::nullopt;
  const size_t end = rest.find_first_not_of("0123456789");
  int64_t group = 0;
  if (!absl::SimpleAtoi(rest.substr(0, end), &group)) return std::nullopt;
  return group;
}

}  // namespace

std::vector<std::optional<int64_t>> ShardGroups(absl::string_view hlo_text) {
  const int leaf_depth = absl::StartsWith(hlo_text, "{{") ? 2 : 1;
  std::vector<std::optional<int64_t>> groups;
  int depth = 0;
  bool is_quoted = false;  // a mesh axis or metadata
  for (size_t i = 0; i < hlo_text.size(); ++i) {
    const char c = hlo_text[i];
    if (c == '"' || c == '\'') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == '{' && ++depth == leaf_depth) groups.emplace_back();
    if (c == '}') --depth;
    if (c != 's' || depth != leaf_depth) continue;
    if (const std::optional<int64_t> group = GroupAt(hlo_text.substr(i))) groups.back() = group;
  }
  return groups;
}

}  // namespace gangway
