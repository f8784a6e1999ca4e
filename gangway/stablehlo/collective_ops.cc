// Collectives over explicit device groups, and the ids of replica and partition.
#include <utility>

#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::CollectiveAttr;
using hlo::Opcode;

// A matrix of ids, one row a group, short rows padded with -1; or axes of a mesh.
absl::StatusOr<hlo::ReplicaGroupList> ReadGroups(const OpContext& context) {
  const OpView& op = context.op();
  const bytecode::Entries& entries = context.program().entries();
  hlo::ReplicaGroupList list;
  GW_ASSIGN_OR_RETURN(bytecode::AttributeId id, op.Attribute("replica_groups"));
  GW_ASSIGN_OR_RETURN(const bytecode::Attribute* attribute, entries.attribute(id));
  if (const auto* axes = std::get_if<bytecode::ReplicaGroupMeshAxesAttr>(attribute)) {
    list.form = hlo::ReplicaGroupList::Form::kMeshAxes;
    GW_ASSIGN_OR_RETURN_WITH(list.mesh, context.program().meshes().ReadMesh(axes->mesh),
                             OpView::Context("replica_groups"));
    GW_ASSIGN_OR_RETURN_WITH(list.axes, context.program().meshes().ReadAxisArray(axes->axes, *list.mesh),
                             OpView::Context("replica_groups"));
    return list;
  }
  GW_ASSIGN_OR_RETURN(list.groups, op.IntRows("replica_groups"));
  for (std::vector<int64_t>& group : list.groups) std::erase(group, -1);
  return list;
}

absl::StatusOr<CollectiveAttr> ReadCollective(const OpContext& context) {
  CollectiveAttr attr;
  GW_ASSIGN_OR_RETURN(attr.groups, ReadGroups(context));
  GW_ASSIGN_OR_RETURN(int64_t channel, context.op().Int("channel_id"));
  if (channel != 0) attr.channel_id = channel;
  if (context.op().Find("use_global_device_ids").has_value()) {
    GW_ASSIGN_OR_RETURN(attr.use_global_device_ids, context.op().Bool("use_global_device_ids"));
  }
  return attr;
}

absl::Status CheckPairs(const OpContext& context) {
  if (context.operands().empty() || context.operands().size() != context.result_shapes().size()) {
    return OpContext::Error("operands and results do not match in number");
  }
  return absl::OkStatus();
}

absl::Status AllReduce(OpContext& context) {
  GW_RETURN_IF_ERROR(CheckPairs(context));
  GW_ASSIGN_OR_RETURN(CollectiveAttr attr, ReadCollective(context));
  GW_ASSIGN_OR_RETURN(hlo::Computation * computation, context.PureRegion(0));
  return context.FinishWith(Opcode::kAllReduce, context.operands(), std::move(attr), {computation});
}

absl::Status CrossReplicaSum(OpContext& context) {
  CollectiveAttr attr;
  GW_ASSIGN_OR_RETURN(attr.groups, ReadGroups(context));
  const Shape scalar = Shape::Scalar(context.result_shape().dtype());
  hlo::Computation* sum = context.program().module().AddComputation("sum");
  hlo::Instruction* a = sum->Add(Opcode::kParameter, scalar, {}, hlo::ParameterAttr{0});
  hlo::Instruction* b = sum->Add(Opcode::kParameter, scalar, {}, hlo::ParameterAttr{1});
  sum->set_root(sum->Add(Opcode::kAdd, scalar, {a, b}));
  return context.FinishWith(Opcode::kAllReduce, context.operands(), std::move(attr), {sum});
}

absl::Status AllGather(OpContext& context) {
  GW_RETURN_IF_ERROR(CheckPairs(context));
  GW_ASSIGN_OR_RETURN(CollectiveAttr attr, ReadCollective(context));
  GW_ASSIGN_OR_RETURN(attr.dimension, context.op().Int("all_gather_dim"));
  return context.FinishWith(Opcode::kAllGather, context.operands(), std::move(attr));
}

absl::Status ReduceScatter(OpContext& context) {
  GW_ASSIGN_OR_RETURN(CollectiveAttr attr, ReadCollective(context));
  GW_ASSIGN_OR_RETURN(attr.dimension, context.op().Int("scatter_dimension"));
  GW_ASSIGN_OR_RETURN(hlo::Computation * computation, context.PureRegion(0));
  return context.FinishWith(Opcode::kReduceScatter, context.operands(), std::move(attr), {computation});
}

// HLO's all-to-all splits and concatenates along one dimension; another concat dimension takes a transposition: the
// received parts are dimension `split` of [.., parts, split / parts, ..] and move in front of `concat`.
absl::StatusOr<hlo::Instruction*> AllToAllOne(OpContext& context, const CollectiveAttr& attr, hlo::Instruction* x,
                                              int64_t concat, int64_t parts) {
  const int64_t split = *attr.dimension;
  const Shape& shape = x->shape();
  if (split < 0 || split >= shape.rank() || concat < 0 || concat >= shape.rank()) {
    return OpContext::Error("attributes split_dimension and concat_dimension: out of range");
  }
  if (parts < 1 || shape.dim(split) % parts != 0) {
    return OpContext::Error(absl::StrCat("attribute split_count: ", parts, " does not divide ", shape.dim(split)));
  }
  hlo::Instruction* exchanged = context.Emit(Opcode::kAllToAll, WithoutLayout(shape), {x}, attr);
  if (split == concat) return exchanged;
  DimVector apart, permutation, moved, joined;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (i == split) apart.push_back(parts);
    apart.push_back(i == split ? shape.dim(i) / parts : shape.dim(i));
    if (i == concat) permutation.push_back(split);
    permutation.push_back(i >= split ? i + 1 : i);
    joined.push_back(i == split ? shape.dim(i) / parts : i == concat ? shape.dim(i) * parts : shape.dim(i));
  }
  for (int64_t from : permutation) moved.push_back(apart[from]);
  hlo::Instruction* parted = context.EmitReshape(exchanged, std::move(apart));
  parted = context.Emit(Opcode::kTranspose, Shape(shape.dtype(), std::move(moved)), {parted},
                        hlo::DimensionsAttr{std::move(permutation)});
  return context.EmitReshape(parted, std::move(joined));
}

absl::Status AllToAll(OpContext& context) {
  GW_RETURN_IF_ERROR(CheckPairs(context));
  GW_ASSIGN_OR_RETURN(CollectiveAttr attr, ReadCollective(context));
  GW_ASSIGN_OR_RETURN(attr.dimension, context.op().Int("split_dimension"));
  GW_ASSIGN_OR_RETURN(int64_t concat, context.op().Int("concat_dimension"));
  GW_ASSIGN_OR_RETURN(int64_t parts, context.op().Int("split_count"));
  std::vector<hlo::Instruction*> results;
  for (hlo::Instruction* operand : context.operands()) {
    GW_ASSIGN_OR_RETURN(hlo::Instruction * result, AllToAllOne(context, attr, operand, concat, parts));
    results.push_back(result);
  }
  return context.FinishValues(std::move(results));
}

absl::Status CollectivePermute(OpContext& context) {
  CollectiveAttr attr;
  GW_ASSIGN_OR_RETURN(int64_t channel, context.op().Int("channel_id"));
  if (channel != 0) attr.channel_id = channel;
  GW_ASSIGN_OR_RETURN(auto rows, context.op().IntRows("source_target_pairs"));
  for (const std::vector<int64_t>& row : rows) {
    if (row.size() != 2) return OpContext::Error("attribute source_target_pairs: rows are not pairs");
    attr.source_target_pairs.emplace_back(row[0], row[1]);
  }
  return context.FinishWith(Opcode::kCollectivePermute, context.operands(), std::move(attr));
}

absl::Status CollectiveBroadcast(OpContext& context) {
  GW_RETURN_IF_ERROR(CheckPairs(context));
  if (context.op().Find("has_dynamic_root").has_value()) {
    GW_ASSIGN_OR_RETURN(bool dynamic, context.op().Bool("has_dynamic_root"));
    if (dynamic) return absl::UnimplementedError("attribute has_dynamic_root: true is not supported");
  }
  GW_ASSIGN_OR_RETURN(CollectiveAttr attr, ReadCollective(context));
  std::vector<hlo::Instruction*> results;
  for (size_t i = 0; i < context.operands().size(); ++i) {
    results.push_back(
        context.Emit(Opcode::kCollectiveBroadcast, context.result_shapes()[i], {context.operand(i)}, attr));
  }
  return context.FinishValues(std::move(results));
}

template <Opcode opcode>
absl::Status Id(OpContext& context) {
  return context.FinishWith(opcode, {});
}

}  // namespace

void AddCollectiveOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.all_gather_v1", 1, 1, 0, AllGather},
           OpRow{"vhlo.all_gather_v2", kAny, kAny, 0, AllGather},
           OpRow{"vhlo.all_reduce_v1", 1, 1, 1, AllReduce},
           OpRow{"vhlo.all_reduce_v2", kAny, kAny, 1, AllReduce},
           OpRow{"vhlo.all_to_all_v1", 1, 1, 0, AllToAll},
           OpRow{"vhlo.all_to_all_v2", kAny, kAny, 0, AllToAll},
           OpRow{"vhlo.collective_broadcast_v1", 1, 1, 0, CollectiveBroadcast},
           OpRow{"vhlo.collective_broadcast_v2", kAny, kAny, 0, CollectiveBroadcast},
           OpRow{"vhlo.collective_permute_v1", 1, 1, 0, CollectivePermute},
           OpRow{"vhlo.cross-replica-sum_v1", 1, 1, 0, CrossReplicaSum},
           OpRow{"vhlo.partition_id_v1", 0, 1, 0, Id<Opcode::kPartitionId>},
           OpRow{"vhlo.reduce_scatter_v1", 1, 1, 1, ReduceScatter},
           OpRow{"vhlo.replica_id_v1", 0, 1, 0, Id<Opcode::kReplicaId>},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo
