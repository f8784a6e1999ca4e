#include "gangway/partition/verify.h"

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/verifier.h"
#include "gangway/mesh/geometry.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::ReplicaGroupList;

template <typename... Parts>
absl::Status Wrong(const Instruction& instruction, const Parts&... parts) {
  return absl::InternalError(absl::StrCat("partitioned program: %", instruction.name(), ": ", parts...));
}

// That no device is in two groups is checked with every module (hlo::Verify); here, that none is missing.
absl::Status CheckGroups(const Instruction& instruction, int64_t partitions) {
  const ReplicaGroupList& list = instruction.attr<hlo::CollectiveAttr>().groups;
  if (instruction.opcode() == hlo::Opcode::kCollectiveBroadcast) return absl::OkStatus();  // others get zeros
  if (list.form == ReplicaGroupList::Form::kIota) {
    if (list.num_groups * list.group_size == partitions) return absl::OkStatus();
    return Wrong(instruction, list.ToString(), " does not cover ", partitions, " partitions");
  }
  if (list.form == ReplicaGroupList::Form::kMeshAxes || list.groups.empty()) return absl::OkStatus();
  int64_t members = 0;
  for (const std::vector<int64_t>& group : list.groups) {
    // Only where results do not depend on it.
    if (instruction.opcode() != hlo::Opcode::kAllReduce && group.size() != list.groups.front().size()) {
      return Wrong(instruction, "groups of different sizes");
    }
    for (int64_t device : group) {
      if (device >= partitions) return Wrong(instruction, "there is no partition ", device);
    }
    members += static_cast<int64_t>(group.size());
  }
  if (members == partitions) return absl::OkStatus();
  return Wrong(instruction, "groups of ", members, " of ", partitions, " partitions");
}

absl::Status CheckTransfers(const Instruction& instruction, int64_t partitions) {
  for (const auto& [source, target] : instruction.attr<hlo::CollectiveAttr>().source_target_pairs) {
    if (source < partitions && target < partitions) continue;
    return Wrong(instruction, "{", source, ",", target, "} leaves the ", partitions, " partitions");
  }
  return absl::OkStatus();
}

absl::Status CheckCollectives(const hlo::Module& module) {
  const int64_t partitions = module.config().num_partitions * module.config().num_replicas;
  absl::flat_hash_map<int64_t, const Instruction*> channels;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      const auto* attr = instruction->attr_if<hlo::CollectiveAttr>();
      if (attr == nullptr) continue;
      GW_RETURN_IF_ERROR(instruction->opcode() == hlo::Opcode::kCollectivePermute
                             ? CheckTransfers(*instruction, partitions)
                             : CheckGroups(*instruction, partitions));
      if (!attr->channel_id) continue;
      const auto [other, added] = channels.emplace(*attr->channel_id, instruction.get());
      if (!added) return Wrong(*instruction, "channel ", *attr->channel_id, " is that of %", other->second->name());
    }
  }
  return absl::OkStatus();
}

// Leaves of a value of the border against the shards of the whole value's leaves.
absl::Status CheckBorder(const Instruction& local, const Shape& whole, const Shardings& shardings, size_t first) {
  const std::vector<Shape> leaves = Leaves(local.shape()), wholes = Leaves(whole);
  if (leaves.size() != wholes.size() || first + leaves.size() > shardings.size()) {
    return Wrong(local, leaves.size(), " leaves for ", wholes.size());
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Shape shard = ShardShape(WithoutLayout(wholes[i]), shardings[first + i]);
    if (Shape::Compatible(leaves[i], shard)) continue;
    return Wrong(local, "leaf ", i, " is ", leaves[i].ToString(), ", the shard is ", shard.ToString());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyPartitioned(const hlo::Module& per_device, const hlo::Module& whole, const Shardings& parameters,
                               const Shardings& outputs) {
  if (const absl::Status sound = hlo::Verify(per_device); !sound.ok()) {
    return absl::InternalError(absl::StrCat("partitioned program: ", sound.message()));
  }
  GW_RETURN_IF_ERROR(CheckCollectives(per_device));
  size_t leaf = 0;
  for (const Instruction* parameter : whole.entry()->parameters()) {
    const int64_t number = parameter->attr<hlo::ParameterAttr>().number;
    GW_RETURN_IF_ERROR(CheckBorder(*per_device.entry()->parameter(number), parameter->shape(), parameters, leaf));
    leaf += static_cast<size_t>(LeafCount(parameter->shape()));
  }
  return CheckBorder(*per_device.entry()->root(), whole.entry()->root()->shape(), outputs, 0);
}

}  // namespace gangway::partition
