#include <algorithm>

#include "gangway/passes/simplify_rules.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;
using Simpler = std::optional<Instruction*>;

int64_t DeviceCount(const Instruction* i) {
  const hlo::ModuleConfig& config = i->parent()->module()->config();
  return config.num_partitions * config.num_replicas;
}

// Every group is one device: the result is the operand.
Simpler GroupsOfOne(Builder& b, Instruction* i) {
  const auto& attr = i->attr<hlo::CollectiveAttr>();
  bool cross_partition = attr.use_global_device_ids || attr.channel_id.has_value();
  int64_t ids = cross_partition ? DeviceCount(i) : i->parent()->module()->config().num_replicas;
  for (const std::vector<int64_t>& group : attr.groups.Expand(ids)) {
    if (group.size() != 1) return std::nullopt;
  }
  return i->operand_count() == 1 && !i->shape().IsTuple() ? i->operand(0) : b.Tuple(i->operands());
}

Simpler PermuteInPlace(Builder&, Instruction* i) {
  const auto& attr = i->attr<hlo::CollectiveAttr>();
  if (i->operand_count() != 1 || !attr.channel_id.has_value()) return std::nullopt;
  std::vector<int64_t> seen;
  for (auto [source, target] : attr.source_target_pairs) {
    if (source != target) return std::nullopt;
    seen.push_back(source);
  }
  if (static_cast<int64_t>(seen.size()) != i->parent()->module()->config().num_partitions) return std::nullopt;
  return i->operand(0);
}

constexpr OpRule kRules[] = {
    {Opcode::kAllReduce, GroupsOfOne},
    {Opcode::kAllGather, GroupsOfOne},
    {Opcode::kReduceScatter, GroupsOfOne},
    {Opcode::kAllToAll, GroupsOfOne},
    {Opcode::kCollectivePermute, PermuteInPlace},
};

}  // namespace

absl::Span<const OpRule> CollectiveRules() { return kRules; }

}  // namespace gangway::passes
