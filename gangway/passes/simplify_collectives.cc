#include <algorithm>
#include <map>

#include "gangway/hlo/replica_groups.h"
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
  if (hlo::LargestGroup(attr.groups, ids) != 1) return std::nullopt;
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

// What goes from device to device twice goes there at once. Devices that receive nothing have zeros either way.
Simpler PermuteOfPermute(Builder& b, Instruction* i) {
  Instruction* inner = i->operand(0);
  if (i->operand_count() != 1 || inner->opcode() != Opcode::kCollectivePermute || inner->operand_count() != 1) {
    return std::nullopt;
  }
  if (inner->users().size() != 1 || inner->has_sharding()) return std::nullopt;
  hlo::CollectiveAttr attr = i->attr<hlo::CollectiveAttr>();
  const auto& first = inner->attr<hlo::CollectiveAttr>();
  if (attr.channel_id.has_value() != first.channel_id.has_value()) return std::nullopt;
  std::map<int64_t, int64_t> source_of;
  for (auto [source, target] : first.source_target_pairs) source_of[target] = source;
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (auto [between, target] : attr.source_target_pairs) {
    auto it = source_of.find(between);
    if (it != source_of.end()) pairs.push_back({it->second, target});
  }
  if (pairs.empty()) return std::nullopt;
  attr.source_target_pairs = std::move(pairs);
  return b.Add(Opcode::kCollectivePermute, {inner->operand(0)}, std::move(attr), {}, WithoutLayout(i->shape()));
}

bool UsedOnce(const Instruction* i) { return i->users().size() == 1 && !i->IsRoot() && !i->has_sharding(); }

// A sum over devices that only one instruction reads.
bool IsSumUsedOnce(const Instruction* i) {
  if (i->opcode() != Opcode::kAllReduce && i->opcode() != Opcode::kReduceScatter) return false;
  const hlo::Computation& combiner = *i->called()[0];
  return i->shape().IsArray() && UsedOnce(i) && i->control_predecessors().empty() && combiner.size() == 3 &&
         combiner.root()->opcode() == Opcode::kAdd;
}

bool SameGroups(const Instruction* a, const Instruction* b) {
  hlo::CollectiveAttr x = a->attr<hlo::CollectiveAttr>(), y = b->attr<hlo::CollectiveAttr>();
  if (x.channel_id.has_value() != y.channel_id.has_value()) return false;
  x.channel_id = y.channel_id;
  return a->opcode() == b->opcode() && x == y && Shape::Compatible(a->operand(0)->shape(), b->operand(0)->shape());
}

Instruction* SumFirst(Builder& b, const Instruction* x, const Instruction* y) {
  Instruction* sum = b.Binary(Opcode::kAdd, x->operand(0), y->operand(0));
  return b.computation()->AddClone(*x, WithoutLayout(x->shape()), {sum});
}

// sum(x) + sum(y) over the same devices is sum(x + y); in (z + sum(x)) + sum(y) as well.
Simpler SumOfSums(Builder& b, Instruction* i) {
  for (int side = 0; side < 2; ++side) {
    Instruction *one = i->operand(side), *rest = i->operand(1 - side);
    if (!IsSumUsedOnce(one)) continue;
    if (IsSumUsedOnce(rest) && SameGroups(one, rest)) return SumFirst(b, rest, one);
    if (rest->opcode() != Opcode::kAdd || !UsedOnce(rest)) continue;
    for (int inner = 0; inner < 2; ++inner) {
      Instruction* other = rest->operand(inner);
      if (!IsSumUsedOnce(other) || !SameGroups(one, other)) continue;
      return b.Binary(Opcode::kAdd, rest->operand(1 - inner), SumFirst(b, other, one));
    }
  }
  return std::nullopt;
}

constexpr OpRule kRules[] = {
    {Opcode::kAdd, SumOfSums},
    {Opcode::kAllReduce, GroupsOfOne},
    {Opcode::kAllGather, GroupsOfOne},
    {Opcode::kReduceScatter, GroupsOfOne},
    {Opcode::kAllToAll, GroupsOfOne},
    {Opcode::kCollectivePermute, PermuteInPlace},
    {Opcode::kCollectivePermute, PermuteOfPermute},
};

}  // namespace

absl::Span<const OpRule> CollectiveRules() { return kRules; }

}  // namespace gangway::passes
