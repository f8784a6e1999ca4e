// Shape inference of collectives, and of the numbers a device has in them.
#include <algorithm>

#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

// Members of a group, or nullopt when the attribute leaves it to the number of devices.
absl::StatusOr<std::optional<int64_t>> GroupSize(const ReplicaGroupList& list) {
  switch (list.form) {
    case ReplicaGroupList::Form::kIota:
      return std::optional<int64_t>(list.group_size);
    case ReplicaGroupList::Form::kMeshAxes:
      return std::optional<int64_t>(ProductOf(list.axes));
    case ReplicaGroupList::Form::kExplicit:
      break;
  }
  if (list.groups.empty()) return std::optional<int64_t>();
  for (const std::vector<int64_t>& group : list.groups) {
    if (group.size() != list.groups[0].size()) return Wrong("replica groups have different sizes");
  }
  return std::optional<int64_t>(static_cast<int64_t>(list.groups[0].size()));
}

std::vector<Shape> OperandShapes(const InferQuery& query) {
  std::vector<Shape> shapes;
  for (const Shape* operand : query.operands) shapes.push_back(*operand);
  return shapes;
}

// all-reduce, collective-permute, collective-broadcast, tuple all-to-all: results are typed like operands.
absl::StatusOr<Shape> SameAsOperands(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  if (query.operand_count() < 1) return Wrong("needs an operand");
  GW_RETURN_IF_ERROR(AttrOf<CollectiveAttr>(query).status());
  return SelfOrTuple(OperandShapes(query));
}

absl::StatusOr<Shape> AllReduce(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckCalledCount(query, 1));
  return SameAsOperands(query);
}

// The factor between two extents where the group size does not say: from the wanted shape, else an error.
absl::StatusOr<int64_t> FactorFromWanted(const InferQuery& query, int64_t dim, bool grows) {
  const Shape* wanted = &query.wanted;
  if (wanted->IsTuple() && !wanted->tuple().empty()) wanted = &wanted->tuple()[0];
  const Shape& operand = query.operand(0);
  if (!wanted->IsArray() || wanted->rank() != operand.rank()) return Wrong("the group size is unknown");
  const int64_t large = grows ? wanted->dim(dim) : operand.dim(dim);
  const int64_t small = grows ? operand.dim(dim) : wanted->dim(dim);
  if (small == 0) return 1;
  if (large % small != 0) return Wrong("dimension ", dim, ": ", large, " is no multiple of ", small);
  return large / small;
}

absl::StatusOr<Shape> GatherOrScatter(const InferQuery& query, bool grows) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  if (query.operand_count() < 1) return Wrong("needs an operand");
  GW_ASSIGN_OR_RETURN(const CollectiveAttr* attr, AttrOf<CollectiveAttr>(query));
  if (!attr->dimension.has_value()) return Wrong("needs a dimension");
  const int64_t dim = *attr->dimension;
  GW_ASSIGN_OR_RETURN(std::optional<int64_t> size, GroupSize(attr->groups));
  std::vector<Shape> shapes = OperandShapes(query);
  for (const Shape& shape : shapes) GW_RETURN_IF_ERROR(CheckDims({dim}, shape.rank(), "dimensions"));
  // Groups of replicas without a channel in an SPMD program do not tell the factor either when they are one device.
  if (!size.has_value()) {
    GW_ASSIGN_OR_RETURN(size, FactorFromWanted(query, dim, grows));
  }
  if (*size < 1) return Wrong("replica groups of ", *size, " devices");
  for (Shape& shape : shapes) {
    int64_t extent = shape.dim(dim);
    if (grows) {
      if (__builtin_mul_overflow(extent, *size, &extent)) return Wrong("the result is too large");
    } else {
      if (extent % *size != 0) return Wrong("dimension ", dim, " (", extent, ") is no multiple of ", *size);
      extent /= *size;
    }
    shape.set_dim(dim, extent);
  }
  return SelfOrTuple(std::move(shapes));
}

absl::StatusOr<Shape> AllGather(const InferQuery& query) { return GatherOrScatter(query, /*grows=*/true); }

absl::StatusOr<Shape> ReduceScatter(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckCalledCount(query, 1));
  return GatherOrScatter(query, /*grows=*/false);
}

absl::StatusOr<Shape> AllToAll(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(const CollectiveAttr* attr, AttrOf<CollectiveAttr>(query));
  if (!attr->dimension.has_value()) {
    // The tuple form stays a tuple for one operand too.
    GW_RETURN_IF_ERROR(CheckArrays(query));
    return Shape::Tuple(OperandShapes(query));
  }
  if (query.operand_count() != 1) return Wrong("with a dimension takes one operand");
  GW_RETURN_IF_ERROR(CheckArrays(query));
  const Shape& shape = query.operand(0);
  GW_RETURN_IF_ERROR(CheckDims({*attr->dimension}, shape.rank(), "dimensions"));
  GW_ASSIGN_OR_RETURN(std::optional<int64_t> size, GroupSize(attr->groups));
  if (size.has_value() && (*size < 1 || shape.dim(*attr->dimension) % *size != 0)) {
    return Wrong("dimension ", *attr->dimension, " is no multiple of the group size ", *size);
  }
  return shape;
}

// (operand, output, four vectors of offsets and sizes) -> output.
absl::StatusOr<Shape> RaggedAllToAll(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  if (query.operand_count() != 6) return Wrong("takes 6 operands, not ", query.operand_count());
  return query.operand(1);
}

// The in-place form carries buffers and offsets; its result is given.
absl::StatusOr<Shape> CollectivePermute(const InferQuery& query) {
  if (query.operand_count() == 4 && query.HasWanted()) return query.wanted;
  return SameAsOperands(query);
}

absl::StatusOr<Shape> Started(const InferQuery& query) {
  if (!query.HasWanted()) return Wrong("the result shape must be given");
  return query.wanted;
}

absl::StatusOr<Shape> AllReduceDone(const InferQuery& query) { return query.operand(0); }

// all-gather-done, collective-permute-done: the second half of (operands, results, ...).
absl::StatusOr<Shape> SecondOfTuple(const InferQuery& query) {
  const Shape& started = query.operand(0);
  if (!started.IsTuple() || started.tuple().size() < 2) return Wrong("the operand must be a tuple of two or more");
  return started.tuple()[1];
}

absl::StatusOr<Shape> DeviceNumber(const InferQuery& query) { return Shape::Scalar(DType::kU32); }

constexpr InferRow kRows[] = {
    {Opcode::kAllGather, AllGather},
    {Opcode::kAllGatherDone, SecondOfTuple},
    {Opcode::kAllGatherStart, Started},
    {Opcode::kAllReduce, AllReduce},
    {Opcode::kAllReduceDone, AllReduceDone},
    {Opcode::kAllReduceStart, AllReduce},
    {Opcode::kAllToAll, AllToAll},
    {Opcode::kCollectiveBroadcast, SameAsOperands},
    {Opcode::kCollectivePermute, CollectivePermute},
    {Opcode::kCollectivePermuteDone, SecondOfTuple},
    {Opcode::kCollectivePermuteStart, Started},
    {Opcode::kPartitionId, DeviceNumber},
    {Opcode::kRaggedAllToAll, RaggedAllToAll},
    {Opcode::kReduceScatter, ReduceScatter},
    {Opcode::kReplicaId, DeviceNumber},
};

}  // namespace

absl::Span<const InferRow> CollectiveInferRows() { return kRows; }

}  // namespace gangway::hlo
