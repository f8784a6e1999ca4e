#include "gangway/partition/collectives.h"

#include <algorithm>
#include <limits>

#include "gangway/tensor/float_format.h"

namespace gangway::partition {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// Of a floating-point type, some of which have no infinity.
double LargestOf(DType dtype) {
  const FloatFormat format = FormatOf(dtype);
  if (format.non_finite == NonFinite::kIeee) return std::numeric_limits<double>::infinity();
  return DecodeFloat(format, format.largest());
}

}  // namespace

hlo::ReplicaGroupList GroupsOver(const Mesh& mesh, const AxisList& axes) {
  hlo::ReplicaGroupList list;
  if (!mesh.IsIota()) {
    list.groups = ReplicaGroups(mesh, axes);
    return list;
  }
  // Mesh axes cut at the ends of `axes`, then the members' parts moved last.
  AxisList parts;
  for (int a = 0; a < mesh.rank(); ++a) {
    std::vector<int64_t> ends = {mesh.axis_size(a)};
    for (const AxisRef& ref : axes) {
      if (ref.axis == a) ends.insert(ends.end(), {ref.pre, ref.pre * ref.size});
    }
    std::sort(ends.begin(), ends.end());
    int64_t begin = 1;
    for (int64_t end : ends) {
      if (end > begin) parts.push_back({a, begin, end / begin});
      begin = end;
    }
  }
  std::vector<int> members;
  for (const AxisRef& ref : axes) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (Overlaps(ref, parts[i])) members.push_back(static_cast<int>(i));
    }
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    list.iota_reshape.push_back(parts[i].size);
    if (std::find(members.begin(), members.end(), static_cast<int>(i)) == members.end()) {
      list.iota_transpose.push_back(static_cast<int>(i));
    }
  }
  list.iota_transpose.insert(list.iota_transpose.end(), members.begin(), members.end());
  if (std::is_sorted(list.iota_transpose.begin(), list.iota_transpose.end())) {
    list.iota_transpose.clear();
    list.iota_reshape = {mesh.size()};
  }
  list.form = hlo::ReplicaGroupList::Form::kIota;
  list.group_size = ProductOf(axes);
  list.num_groups = mesh.size() / list.group_size;
  return list;
}

Opcode ReductionOpcode(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return Opcode::kAdd;
    case Reduction::kMax:
      return Opcode::kMaximum;
    case Reduction::kMin:
      return Opcode::kMinimum;
    case Reduction::kProduct:
      return Opcode::kMultiply;
    case Reduction::kAnd:
      return Opcode::kAnd;
    case Reduction::kOr:
      return Opcode::kOr;
  }
  return Opcode::kAdd;
}

Literal ReductionIdentity(Reduction reduction, DType dtype) {
  const bool is_float = IsFloat(dtype);
  const int bits = BitWidth(dtype);
  Literal literal(Shape::Scalar(dtype));
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kOr:
      break;  // zero
    case Reduction::kProduct:
      StoreDouble(dtype, 1, literal.data());
      break;
    case Reduction::kAnd:
      StoreInt64(dtype, dtype == DType::kPred ? 1 : -1, literal.data());
      break;
    case Reduction::kMax:
      if (is_float) {
        StoreDouble(dtype, -LargestOf(dtype), literal.data());
      } else if (IsSigned(dtype)) {
        StoreInt64(dtype, bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1)),
                   literal.data());
      }
      break;
    case Reduction::kMin:
      if (is_float) {
        StoreDouble(dtype, LargestOf(dtype), literal.data());
      } else if (IsSigned(dtype)) {
        StoreInt64(dtype, bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1,
                   literal.data());
      } else {
        StoreInt64(dtype, dtype == DType::kPred ? 1 : -1, literal.data());
      }
      break;
  }
  return literal;
}

hlo::Computation* CollectiveBuilder::Combiner(Reduction reduction, DType dtype) {
  return builder_->ScalarComputation(ReductionOpcode(reduction), dtype);
}

hlo::CollectiveAttr CollectiveBuilder::Attr(const Mesh& mesh, const AxisList& axes) {
  hlo::CollectiveAttr attr;
  attr.groups = GroupsOver(mesh, axes);
  attr.channel_id = (*next_channel_)++;
  attr.use_global_device_ids = true;
  return attr;
}

Instruction* CollectiveBuilder::AllGather(Instruction* x, int64_t dim, const Mesh& mesh, const AxisList& axes) {
  hlo::CollectiveAttr attr = Attr(mesh, axes);
  attr.dimension = dim;
  Shape shape = WithoutLayout(x->shape());
  shape.set_dim(dim, shape.dim(dim) * ProductOf(axes));
  return builder_->Add(Opcode::kAllGather, {x}, std::move(attr), {}, shape);
}

Instruction* CollectiveBuilder::AllReduce(Instruction* x, const Mesh& mesh, const AxisList& axes, Reduction reduction) {
  return builder_->Add(Opcode::kAllReduce, {x}, Attr(mesh, axes), {Combiner(reduction, x->shape().dtype())},
                       WithoutLayout(x->shape()));
}

Instruction* CollectiveBuilder::ReduceScatter(Instruction* x, int64_t dim, const Mesh& mesh, const AxisList& axes,
                                              Reduction reduction) {
  hlo::CollectiveAttr attr = Attr(mesh, axes);
  attr.dimension = dim;
  Shape shape = WithoutLayout(x->shape());
  shape.set_dim(dim, shape.dim(dim) / ProductOf(axes));
  return builder_->Add(Opcode::kReduceScatter, {x}, std::move(attr), {Combiner(reduction, x->shape().dtype())}, shape);
}

Instruction* CollectiveBuilder::AllToAll(Instruction* x, int64_t dim, const Mesh& mesh, const AxisList& axes) {
  hlo::CollectiveAttr attr = Attr(mesh, axes);
  attr.use_global_device_ids = false;
  attr.dimension = dim;
  return builder_->Add(Opcode::kAllToAll, {x}, std::move(attr), {}, WithoutLayout(x->shape()));
}

Instruction* CollectiveBuilder::Permute(Instruction* x, DevicePairs pairs) {
  bool moves = false;
  for (const auto& [source, target] : pairs) moves |= source != target;
  if (!moves) return x;
  hlo::CollectiveAttr attr;
  attr.source_target_pairs = std::move(pairs);
  attr.channel_id = (*next_channel_)++;
  return builder_->Add(Opcode::kCollectivePermute, {x}, std::move(attr), {}, WithoutLayout(x->shape()));
}

}  // namespace gangway::partition
