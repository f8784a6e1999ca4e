// Operations with a scalar computation: reduce, map, sort.
#include <utility>

#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::Opcode;

absl::Status Reduce(OpContext& context) {
  const size_t count = context.operands().size() / 2;
  if (count == 0 || context.operands().size() % 2 != 0 || context.result_shapes().size() != count) {
    return OpContext::Error("inputs, init values and results do not match in number");
  }
  GW_ASSIGN_OR_RETURN(DimVector dimensions, context.op().Ints("dimensions"));
  GW_ASSIGN_OR_RETURN(hlo::Computation * body, context.PureRegion(0));
  return context.FinishWith(Opcode::kReduce, context.operands(), hlo::DimensionsAttr{std::move(dimensions)}, {body});
}

absl::Status Map(OpContext& context) {
  GW_ASSIGN_OR_RETURN(DimVector dimensions, context.op().Ints("dimensions"));
  GW_ASSIGN_OR_RETURN(hlo::Computation * computation, context.PureRegion(0));
  return context.FinishWith(Opcode::kMap, context.operands(), hlo::DimensionsAttr{std::move(dimensions)},
                            {computation});
}

absl::Status Sort(OpContext& context) {
  if (context.operands().empty() || context.operands().size() != context.result_shapes().size()) {
    return OpContext::Error("inputs and results do not match in number");
  }
  hlo::SortAttr attr;
  GW_ASSIGN_OR_RETURN(attr.dimension, context.op().Int("dimension"));
  if (attr.dimension < 0) attr.dimension += context.operand(0)->shape().rank();
  GW_ASSIGN_OR_RETURN(attr.is_stable, context.op().Bool("is_stable"));
  GW_ASSIGN_OR_RETURN(hlo::Computation * comparator, context.PureRegion(0));
  return context.FinishWith(Opcode::kSort, context.operands(), attr, {comparator});
}

}  // namespace

void AddReduceOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.map_v1", kAny, 1, 1, Map},
           OpRow{"vhlo.reduce_v1", kAny, kAny, 1, Reduce},
           OpRow{"vhlo.sort_v1", kAny, kAny, 1, Sort},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo
