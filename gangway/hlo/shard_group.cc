#include "gangway/hlo/shard_group.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/hlo/computation.h"

namespace gangway::hlo {
namespace {

// The element of a tuple that holds leaf number `leaf`, which becomes its number in there.
Instruction* ElementOf(Instruction* tuple, int64_t* leaf) {
  const std::vector<Shape>& elements = tuple->shape().tuple();
  int64_t index = 0;
  for (; *leaf >= LeafCount(elements[index]); ++index) *leaf -= LeafCount(elements[index]);
  return tuple->parent()->Add(Opcode::kGetTupleElement, elements[index], {tuple}, TupleIndexAttr{index});
}

}  // namespace

void JoinShardGroups(Instruction* instruction, const std::vector<std::optional<int64_t>>& groups) {
  const int64_t leaves = std::min<int64_t>(LeafCount(instruction->shape()), static_cast<int64_t>(groups.size()));
  for (int64_t i = 0; i < leaves; ++i) {
    if (!groups[i]) continue;
    Instruction* member = instruction;
    for (int64_t leaf = i; member->shape().IsTuple();) member = ElementOf(member, &leaf);
    CustomCallAttr call;
    call.target = std::string(kShardingGroup);
    call.has_side_effect = true;
    Instruction* joined = member->parent()->Add(Opcode::kCustomCall, Shape::Tuple({}), {member}, std::move(call));
    joined->mutable_frontend_attributes().emplace(std::string(kShardingGroupId), absl::StrCat(*groups[i]));
  }
}

}  // namespace gangway::hlo
