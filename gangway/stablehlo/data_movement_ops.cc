// Operations that move elements without computing: broadcasts, reshape, transpose, slices with fixed bounds...
#include <utility>

#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::DimensionsAttr;
using hlo::Opcode;

absl::Status Constant(OpContext& context) {
  GW_ASSIGN_OR_RETURN(hlo::Instruction * constant, context.program().EmitConstant(context.op().op(), context.scope()));
  return context.FinishValues({constant});
}

absl::Status Iota(OpContext& context) {
  GW_ASSIGN_OR_RETURN(int64_t dimension, context.op().Int("iota_dimension"));
  return context.FinishWith(Opcode::kIota, {}, DimensionsAttr{{dimension}});
}

absl::Status Reshape(OpContext& context) { return context.FinishWith(Opcode::kReshape, {context.operand(0)}); }

absl::Status Transpose(OpContext& context) {
  GW_ASSIGN_OR_RETURN(DimVector permutation, context.op().Ints("permutation"));
  return context.FinishWith(Opcode::kTranspose, context.operands(), DimensionsAttr{std::move(permutation)});
}

absl::Status Reverse(OpContext& context) {
  GW_ASSIGN_OR_RETURN(DimVector dimensions, context.op().Ints("dimensions"));
  return context.FinishWith(Opcode::kReverse, context.operands(), DimensionsAttr{std::move(dimensions)});
}

// New dimensions in front.
absl::Status Broadcast(OpContext& context) {
  GW_ASSIGN_OR_RETURN(DimVector sizes, context.op().Ints("broadcast_sizes"));
  DimVector dims;
  for (int64_t i = 0; i < context.operand(0)->shape().rank(); ++i) {
    dims.push_back(static_cast<int64_t>(sizes.size()) + i);
  }
  return context.FinishWith(Opcode::kBroadcast, context.operands(), DimensionsAttr{std::move(dims)});
}

absl::Status BroadcastInDim(OpContext& context) {
  GW_ASSIGN_OR_RETURN(DimVector dims, context.op().Ints("broadcast_dimensions"));
  return FinishBroadcastInDim(context, context.operand(0), std::move(dims));
}

absl::Status Concatenate(OpContext& context) {
  GW_ASSIGN_OR_RETURN(int64_t dimension, context.op().Int("dimension"));
  if (context.operands().empty()) return OpContext::Error("no operands");
  return context.FinishWith(Opcode::kConcatenate, context.operands(), DimensionsAttr{{dimension}});
}

absl::Status Slice(OpContext& context) {
  hlo::SliceAttr attr;
  GW_ASSIGN_OR_RETURN(attr.starts, context.op().Ints("start_indices"));
  GW_ASSIGN_OR_RETURN(attr.limits, context.op().Ints("limit_indices"));
  GW_ASSIGN_OR_RETURN(attr.strides, context.op().Ints("strides"));
  return context.FinishWith(Opcode::kSlice, context.operands(), std::move(attr));
}

absl::Status Pad(OpContext& context) {
  GW_ASSIGN_OR_RETURN(DimVector low, context.op().Ints("edge_padding_low"));
  GW_ASSIGN_OR_RETURN(DimVector high, context.op().Ints("edge_padding_high"));
  GW_ASSIGN_OR_RETURN(DimVector interior, context.op().Ints("interior_padding"));
  if (low.size() != high.size() || low.size() != interior.size()) {
    return OpContext::Error("attribute edge_padding_low: not as long as edge_padding_high and interior_padding");
  }
  hlo::PadAttr attr;
  for (size_t i = 0; i < low.size(); ++i) attr.dims.push_back({low[i], high[i], interior[i]});
  return context.FinishWith(Opcode::kPad, context.operands(), std::move(attr));
}

// Shapes are static here, so the size is a constant.
absl::Status GetDimensionSize(OpContext& context) {
  GW_ASSIGN_OR_RETURN(int64_t dimension, context.op().Int("dimension"));
  const Shape& shape = context.operand(0)->shape();
  if (dimension < 0 || dimension >= shape.rank()) return OpContext::Error("attribute dimension: out of range");
  return context.FinishValues({context.EmitScalar(DType::kS32, static_cast<double>(shape.dim(dimension)))});
}

absl::Status Tuple(OpContext& context) { return context.FinishWith(Opcode::kTuple, context.operands()); }

absl::Status GetTupleElement(OpContext& context) {
  GW_ASSIGN_OR_RETURN(int64_t index, context.op().Int("index"));
  return context.FinishWith(Opcode::kGetTupleElement, context.operands(), hlo::TupleIndexAttr{index});
}

// Identity on any number of values.
absl::Status OptimizationBarrier(OpContext& context) {
  if (context.operands().size() != context.result_shapes().size()) return OpContext::Error("operands are not results");
  if (context.operands().empty()) return absl::OkStatus();
  hlo::Instruction* operand =
      context.operands().size() == 1 ? context.operand(0) : context.EmitTuple(context.operands());
  return context.FinishWith(Opcode::kOptBarrier, {operand});
}

}  // namespace

// HLO's broadcast does not stretch dimensions of extent 1: they are removed first.
absl::Status FinishBroadcastInDim(OpContext& context, hlo::Instruction* x, DimVector dims) {
  const Shape& from = x->shape();
  const Shape& to = context.result_shape();
  if (static_cast<int64_t>(dims.size()) != from.rank()) {
    return OpContext::Error(
        absl::StrCat("attribute broadcast_dimensions: ", dims.size(), " entries for an operand of rank ", from.rank()));
  }
  DimVector kept_dims, kept_extents;
  for (int64_t i = 0; i < from.rank(); ++i) {
    if (dims[i] < 0 || dims[i] >= to.rank()) {
      return OpContext::Error(absl::StrCat("attribute broadcast_dimensions: no dimension ", dims[i]));
    }
    if (from.dim(i) == 1 && to.dim(dims[i]) != 1) continue;
    kept_dims.push_back(dims[i]);
    kept_extents.push_back(from.dim(i));
  }
  if (kept_dims.size() != dims.size()) x = context.EmitReshape(x, std::move(kept_extents));
  return context.FinishWith(Opcode::kBroadcast, {x}, DimensionsAttr{std::move(kept_dims)});
}

void AddDataMovementOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.broadcast_v1", 1, 1, 0, Broadcast},
           OpRow{"vhlo.broadcast_in_dim_v1", 1, 1, 0, BroadcastInDim},
           OpRow{"vhlo.concatenate_v1", kAny, 1, 0, Concatenate},
           OpRow{"vhlo.constant_v1", 0, 1, 0, Constant},
           OpRow{"vhlo.get_dimension_size_v1", 1, 1, 0, GetDimensionSize},
           OpRow{"vhlo.get_tuple_element_v1", 1, 1, 0, GetTupleElement},
           OpRow{"vhlo.iota_v1", 0, 1, 0, Iota},
           OpRow{"vhlo.optimization_barrier_v1", kAny, kAny, 0, OptimizationBarrier},
           OpRow{"vhlo.pad_v1", 2, 1, 0, Pad},
           OpRow{"vhlo.reshape_v1", 1, 1, 0, Reshape},
           OpRow{"vhlo.reverse_v1", 1, 1, 0, Reverse},
           OpRow{"vhlo.slice_v1", 1, 1, 0, Slice},
           OpRow{"vhlo.transpose_v1", 1, 1, 0, Transpose},
           OpRow{"vhlo.tuple_v1", kAny, 1, 0, Tuple},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo
