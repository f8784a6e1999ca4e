// Operations whose shape is an operand. Our shapes are static: they are read where the result's type is static and the
// operands that decide it are constants, else refused.
#include <utility>

#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::Opcode;

absl::Status DynamicReshape(OpContext& context) { return context.FinishWith(Opcode::kReshape, {context.operand(0)}); }

absl::Status DynamicBroadcastInDim(OpContext& context) {
  GW_ASSIGN_OR_RETURN(DimVector dims, context.op().Ints("broadcast_dimensions"));
  return FinishBroadcastInDim(context, context.operand(0), std::move(dims));
}

absl::Status DynamicIota(OpContext& context) {
  GW_ASSIGN_OR_RETURN(int64_t dimension, context.op().Int("iota_dimension"));
  return context.FinishWith(Opcode::kIota, {}, hlo::DimensionsAttr{{dimension}});
}

absl::Status DynamicPad(OpContext& context) {
  GW_ASSIGN_OR_RETURN(DimVector low, context.ConstantOperand(2));
  GW_ASSIGN_OR_RETURN(DimVector high, context.ConstantOperand(3));
  GW_ASSIGN_OR_RETURN(DimVector interior, context.ConstantOperand(4));
  if (low.size() != high.size() || low.size() != interior.size()) {
    return OpContext::Error("padding operands of different lengths");
  }
  hlo::PadAttr attr;
  for (size_t i = 0; i < low.size(); ++i) attr.dims.push_back({low[i], high[i], interior[i]});
  return context.FinishWith(Opcode::kPad, {context.operand(0), context.operand(1)}, std::move(attr));
}

absl::Status RealDynamicSlice(OpContext& context) {
  hlo::SliceAttr attr;
  GW_ASSIGN_OR_RETURN(attr.starts, context.ConstantOperand(1));
  GW_ASSIGN_OR_RETURN(attr.limits, context.ConstantOperand(2));
  GW_ASSIGN_OR_RETURN(attr.strides, context.ConstantOperand(3));
  return context.FinishWith(Opcode::kSlice, {context.operand(0)}, std::move(attr));
}

}  // namespace

void AddDynamicShapeOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.dynamic_broadcast_in_dim_v1", 2, 1, 0, DynamicBroadcastInDim},
           OpRow{"vhlo.dynamic_iota_v1", 1, 1, 0, DynamicIota},
           OpRow{"vhlo.dynamic_pad_v1", 5, 1, 0, DynamicPad},
           OpRow{"vhlo.dynamic_reshape_v1", 2, 1, 0, DynamicReshape},
           OpRow{"vhlo.real_dynamic_slice_v1", 4, 1, 0, RealDynamicSlice},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo
