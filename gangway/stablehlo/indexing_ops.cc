// Gather, scatter and slices at positions computed by the program.
#include <utility>

#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::Opcode;

// Batching dimensions exist from version 2 on.
absl::StatusOr<DimVector> IntsOrEmpty(const OpView& op, absl::string_view attribute) {
  if (!op.Find(attribute).has_value()) return DimVector();
  return op.Ints(attribute);
}

absl::StatusOr<hlo::GatherAttr> ReadGather(const OpView& op) {
  hlo::GatherAttr attr;
  GW_ASSIGN_OR_RETURN(attr.offset_dims, op.Ints("offset_dims"));
  GW_ASSIGN_OR_RETURN(attr.collapsed_slice_dims, op.Ints("collapsed_slice_dims"));
  GW_ASSIGN_OR_RETURN(attr.start_index_map, op.Ints("start_index_map"));
  GW_ASSIGN_OR_RETURN(attr.operand_batching_dims, IntsOrEmpty(op, "operand_batching_dims"));
  GW_ASSIGN_OR_RETURN(attr.start_indices_batching_dims, IntsOrEmpty(op, "start_indices_batching_dims"));
  GW_ASSIGN_OR_RETURN(attr.index_vector_dim, op.Int("index_vector_dim"));
  GW_ASSIGN_OR_RETURN(attr.indices_are_sorted, op.Bool("indices_are_sorted"));
  return attr;
}

absl::Status Gather(OpContext& context) {
  GW_ASSIGN_OR_RETURN(hlo::GatherAttr attr, ReadGather(context.op()));
  GW_ASSIGN_OR_RETURN(attr.slice_sizes, context.op().Ints("slice_sizes"));
  return context.FinishWith(Opcode::kGather, context.operands(), std::move(attr));
}

// The slice sizes are an operand, which must be a constant.
absl::Status DynamicGather(OpContext& context) {
  GW_ASSIGN_OR_RETURN(hlo::GatherAttr attr, ReadGather(context.op()));
  GW_ASSIGN_OR_RETURN(attr.slice_sizes, context.ConstantOperand(2));
  return context.FinishWith(Opcode::kGather, {context.operand(0), context.operand(1)}, std::move(attr));
}

absl::Status Scatter(OpContext& context) {
  const OpView& op = context.op();
  const size_t inputs = context.operands().size() / 2;
  if (inputs == 0 || context.operands().size() % 2 != 1 || context.result_shapes().size() != inputs) {
    return OpContext::Error("inputs, updates and results do not match in number");
  }
  hlo::ScatterAttr attr;
  GW_ASSIGN_OR_RETURN(attr.update_window_dims, op.Ints("update_window_dims"));
  GW_ASSIGN_OR_RETURN(attr.inserted_window_dims, op.Ints("inserted_window_dims"));
  GW_ASSIGN_OR_RETURN(attr.scatter_dims_to_operand_dims, op.Ints("scatter_dims_to_operand_dims"));
  GW_ASSIGN_OR_RETURN(attr.input_batching_dims, IntsOrEmpty(op, "input_batching_dims"));
  GW_ASSIGN_OR_RETURN(attr.scatter_indices_batching_dims, IntsOrEmpty(op, "scatter_indices_batching_dims"));
  GW_ASSIGN_OR_RETURN(attr.index_vector_dim, op.Int("index_vector_dim"));
  GW_ASSIGN_OR_RETURN(attr.indices_are_sorted, op.Bool("indices_are_sorted"));
  GW_ASSIGN_OR_RETURN(attr.unique_indices, op.Bool("unique_indices"));
  GW_ASSIGN_OR_RETURN(hlo::Computation * update, context.PureRegion(0));
  return context.FinishWith(Opcode::kScatter, context.operands(), std::move(attr), {update});
}

absl::Status DynamicSlice(OpContext& context) {
  if (context.operands().empty()) return OpContext::Error("no operands");
  GW_ASSIGN_OR_RETURN(DimVector sizes, context.op().Ints("slice_sizes"));
  return context.FinishWith(Opcode::kDynamicSlice, context.operands(), hlo::DynamicSliceAttr{std::move(sizes)});
}

absl::Status DynamicUpdateSlice(OpContext& context) {
  if (context.operands().size() < 2) return OpContext::Error("fewer than two operands");
  return context.FinishWith(Opcode::kDynamicUpdateSlice, context.operands());
}

// result[b.., o.., i.., s..] = operand[b.., o.., index[b.., i..], s..], where b are the first batch_dims dimensions.
absl::Status TorchIndexSelect(OpContext& context) {
  GW_ASSIGN_OR_RETURN(int64_t dim, context.op().Int("dim"));
  GW_ASSIGN_OR_RETURN(int64_t batch, context.op().Int("batch_dims"));
  const Shape& operand = context.operand(0)->shape();
  const Shape& index = context.operand(1)->shape();
  if (!operand.IsArray() || !index.IsArray() || batch < 0 || batch > dim || dim >= operand.rank() ||
      batch > index.rank()) {
    return OpContext::Error("attributes dim and batch_dims: out of range");
  }
  hlo::GatherAttr attr;
  const int64_t index_rank = index.rank() - batch;
  for (int64_t i = 0; i < operand.rank(); ++i) {
    const bool whole = i >= batch && i != dim;
    attr.slice_sizes.push_back(whole ? operand.dim(i) : 1);
    if (whole) attr.offset_dims.push_back(i < dim ? i : i - 1 + index_rank);
  }
  for (int64_t i = 0; i < batch; ++i) {
    attr.operand_batching_dims.push_back(i);
    attr.start_indices_batching_dims.push_back(i);
  }
  attr.collapsed_slice_dims = {dim};
  attr.start_index_map = {dim};
  attr.index_vector_dim = index.rank();
  return context.FinishWith(Opcode::kGather, context.operands(), std::move(attr));
}

}  // namespace

void AddIndexingOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.dynamic_gather_v1", 3, 1, 0, DynamicGather},
           OpRow{"vhlo.dynamic_gather_v2", 3, 1, 0, DynamicGather},
           OpRow{"vhlo.dynamic_slice_v1", kAny, 1, 0, DynamicSlice},
           OpRow{"vhlo.dynamic_update_slice_v1", kAny, 1, 0, DynamicUpdateSlice},
           OpRow{"vhlo.gather_v1", 2, 1, 0, Gather},
           OpRow{"vhlo.gather_v2", 2, 1, 0, Gather},
           OpRow{"vhlo.scatter_v1", kAny, kAny, 1, Scatter},
           OpRow{"vhlo.scatter_v2", kAny, kAny, 1, Scatter},
           OpRow{"vhlo.torch_index_select_v1", 2, 1, 0, TorchIndexSelect},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo
