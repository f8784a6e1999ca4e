// Operations of the sdy dialect (Shardy) and the casts that lead to and from it.
#include <utility>

#include "gangway/hlo/shard_group.h"
#include "gangway/stablehlo/manual_computation.h"
#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// One operand for one result, of equal shape.
absl::Status Identity(OpContext& context) { return context.FinishEach(context.operands()); }

// A constraint whose result nobody uses is one of the operand itself.
void ConstrainOperand(Instruction* operand, const Sharding& sharding) {
  if (!operand->has_sharding()) operand->set_shardings(Shardings{sharding});
}

absl::Status Constrain(OpContext& context, absl::string_view attribute) {
  if (context.scope().pure) return Identity(context);
  Instruction* operand = context.operand(0);
  if (!operand->shape().IsArray()) return OpContext::Error("the operand is no array");
  GW_ASSIGN_OR_RETURN(bytecode::AttributeId id, context.op().Attribute(attribute));
  GW_ASSIGN_OR_RETURN_WITH(std::optional<Sharding> sharding,
                           context.program().meshes().Read(id, operand->shape().rank()), OpView::Context(attribute));
  if (!sharding.has_value()) return Identity(context);
  GW_ASSIGN_OR_RETURN_WITH(Sharding full, context.WithManual(*std::move(sharding)), OpView::Context(attribute));
  if (!context.program().IsUsed(context.op().op().results[0])) {
    ConstrainOperand(operand, full);
    return Identity(context);
  }
  return context.FinishEach({context.EmitSharding(operand, std::move(full))});
}

absl::Status ShardingConstraint(OpContext& context) { return Constrain(context, "sharding"); }
// Collectives of sdy say how a value is laid out before and after; the value stays the same.
absl::Status OutSharding(OpContext& context) { return Constrain(context, "out_sharding"); }

absl::Status DataFlowEdge(OpContext& context) {
  return context.op().Find("sharding").has_value() ? Constrain(context, "sharding") : Identity(context);
}

std::vector<int64_t> Ranks(const std::vector<Shape>& shapes) {
  std::vector<int64_t> ranks;
  for (const Shape& shape : shapes) ranks.push_back(shape.rank());
  return ranks;
}

std::vector<Shape> OperandShapes(const OpContext& context) {
  std::vector<Shape> shapes;
  for (const Instruction* operand : context.operands()) shapes.push_back(operand->shape());
  return shapes;
}

using MaybeShardings = std::vector<std::optional<Sharding>>;

absl::StatusOr<MaybeShardings> ReadShardings(const OpContext& context, absl::string_view attribute,
                                             const std::vector<Shape>& shapes) {
  GW_ASSIGN_OR_RETURN(bytecode::AttributeId id, context.op().Attribute(attribute));
  GW_ASSIGN_OR_RETURN_WITH(MaybeShardings shardings, context.program().meshes().ReadPerValue(id, Ranks(shapes)),
                           OpView::Context(attribute));
  return shardings;
}

// Over the mesh that the first sharding names; a computation without operands and results needs none.
absl::StatusOr<ManualAxes> ReadManual(const OpContext& context, const MaybeShardings& in, const MaybeShardings& out) {
  GW_ASSIGN_OR_RETURN(bytecode::AttributeId id, context.op().Attribute("manual_axes"));
  for (const MaybeShardings* shardings : {&in, &out}) {
    for (const std::optional<Sharding>& sharding : *shardings) {
      if (!sharding.has_value()) continue;
      GW_ASSIGN_OR_RETURN_WITH(AxisList axes, context.program().meshes().ReadManualAxes(id, *sharding->mesh),
                               OpView::Context("manual_axes"));
      return AddManualAxes(context, sharding->mesh, axes);
    }
  }
  GW_ASSIGN_OR_RETURN(const bytecode::ManualAxesAttr* manual, context.op().As<bytecode::ManualAxesAttr>("manual_axes"));
  if (!manual->axes.empty()) return OpContext::Error("attribute manual_axes: over no mesh");
  return context.scope().manual;
}

// The region's body between whole and local values; see README.md.
absl::Status ManualComputation(OpContext& context) {
  GW_ASSIGN_OR_RETURN(MaybeShardings in, ReadShardings(context, "in_shardings", OperandShapes(context)));
  GW_ASSIGN_OR_RETURN(MaybeShardings out, ReadShardings(context, "out_shardings", context.result_shapes()));
  GW_ASSIGN_OR_RETURN(ManualAxes manual, ReadManual(context, in, out));
  GW_ASSIGN_OR_RETURN(const bytecode::Block* block, Translation::SingleBlock(context.op().op().regions[0]));
  if (block->arguments.count != context.operands().size()) return OpContext::Error("operands are not the arguments");
  for (uint32_t i = 0; i < block->arguments.count; ++i) {
    GW_ASSIGN_OR_RETURN(Shape local_shape, context.program().ShapeOf(block->arguments[i]));
    Instruction* value = context.operand(i);
    if (in[i].has_value()) {
      GW_ASSIGN_OR_RETURN_WITH(value, EmitFullToShard(context, value, *in[i], manual, local_shape),
                               absl::StrCat("attribute in_shardings: argument ", i));
    } else if (!Shape::Compatible(local_shape, value->shape())) {
      return OpContext::Error(absl::StrCat("argument ", i, " has another shape than its operand"));
    }
    context.program().Define(block->arguments[i], value);
  }
  Scope inner = context.Inner();
  inner.manual = manual;
  if (!context.op_name().empty()) inner.op_name_prefix = context.op_name();
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> results, context.program().ConvertBlock(*block, inner));
  if (results.size() != out.size()) return OpContext::Error("the body does not return the op's results");
  for (size_t i = 0; i < results.size(); ++i) {
    if (!out[i].has_value()) continue;
    GW_ASSIGN_OR_RETURN_WITH(results[i],
                             EmitShardToFull(context, results[i], *out[i], manual, context.result_shapes()[i]),
                             absl::StrCat("attribute out_shardings: result ", i));
  }
  return context.FinishEach(results);
}

// Constrains what goes in or out of a named computation, where it says so.
absl::Status ConstrainAll(OpContext& context, absl::string_view attribute, std::vector<Instruction*>& values) {
  if (!context.op().Find(attribute).has_value()) return absl::OkStatus();
  std::vector<Shape> shapes;
  for (const Instruction* value : values) shapes.push_back(value->shape());
  GW_ASSIGN_OR_RETURN(MaybeShardings shardings, ReadShardings(context, attribute, shapes));
  for (size_t i = 0; i < values.size(); ++i) {
    if (!shardings[i].has_value()) continue;
    GW_ASSIGN_OR_RETURN(Sharding sharding, context.WithManual(*std::move(shardings[i])));
    values[i] = context.EmitSharding(values[i], std::move(sharding));
  }
  return absl::OkStatus();
}

absl::Status NamedComputation(OpContext& context) {
  GW_ASSIGN_OR_RETURN(const bytecode::Block* block, Translation::SingleBlock(context.op().op().regions[0]));
  std::vector<Instruction*> arguments = context.operands();
  GW_RETURN_IF_ERROR(ConstrainAll(context, "in_shardings", arguments));
  if (block->arguments.count != arguments.size()) return OpContext::Error("operands are not the arguments");
  for (uint32_t i = 0; i < block->arguments.count; ++i) {
    GW_ASSIGN_OR_RETURN(Shape shape, context.program().ShapeOf(block->arguments[i]));
    if (!Shape::Compatible(shape, arguments[i]->shape())) return OpContext::Error("operands are not the arguments");
    context.program().Define(block->arguments[i], arguments[i]);
  }
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> results, context.program().ConvertBlock(*block, context.Inner()));
  GW_RETURN_IF_ERROR(ConstrainAll(context, "out_shardings", results));
  return context.FinishEach(results);
}

// Kept as calls that propagation understands, with the number as a frontend attribute, as in the round-trip form.
Instruction* EmitAnnotation(OpContext& context, absl::string_view target, absl::string_view key, int64_t value,
                            bool has_side_effect) {
  hlo::CustomCallAttr call;
  call.target = std::string(target);
  call.has_side_effect = has_side_effect;
  Instruction* annotation =
      context.Emit(Opcode::kCustomCall, context.CombinedShape(), {context.operand(0)}, std::move(call));
  annotation->mutable_frontend_attributes().emplace(std::string(key), absl::StrCat(value));
  return annotation;
}

absl::Status ShardingGroup(OpContext& context) {
  if (context.scope().pure) return absl::OkStatus();
  GW_ASSIGN_OR_RETURN(int64_t group, context.op().Int("group_id"));
  EmitAnnotation(context, hlo::kShardingGroup, hlo::kShardingGroupId, group, true);
  return absl::OkStatus();
}

absl::Status PropagationBarrier(OpContext& context) {
  if (context.scope().pure) return Identity(context);
  GW_ASSIGN_OR_RETURN(int64_t direction, context.op().Int("allowed_direction"));
  return context.FinishEach(
      {EmitAnnotation(context, "xla.sdy.PropagationBarrier", "xla.sdy.allowed_direction", direction, false)});
}

absl::Status Constant(OpContext& context) {
  GW_ASSIGN_OR_RETURN(Instruction * constant, context.program().EmitConstant(context.op().op(), context.scope()));
  return context.FinishEach({constant});
}

}  // namespace

void AddSdyOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"builtin.unrealized_conversion_cast", kAny, kAny, 0, Identity},
           OpRow{"sdy.all_gather", 1, 1, 0, OutSharding},
           OpRow{"sdy.all_reduce", 1, 1, 0, OutSharding},
           OpRow{"sdy.all_slice", 1, 1, 0, OutSharding},
           OpRow{"sdy.all_to_all", 1, 1, 0, OutSharding},
           OpRow{"sdy.collective_permute", 1, 1, 0, OutSharding},
           OpRow{"sdy.constant", 0, 1, 0, Constant},
           OpRow{"sdy.data_flow_edge", 1, 1, 0, DataFlowEdge},
           OpRow{"sdy.func_data_flow_edge", 1, 1, 0, Identity},
           OpRow{"sdy.manual_computation", kAny, kAny, 1, ManualComputation},
           OpRow{"sdy.named_computation", kAny, kAny, 1, NamedComputation},
           OpRow{"sdy.propagation_barrier", 1, 1, 0, PropagationBarrier},
           OpRow{"sdy.reduce_scatter", 1, 1, 0, OutSharding},
           OpRow{"sdy.replicated_to_unreduced", 1, 1, 0, OutSharding},
           OpRow{"sdy.reshard", 1, 1, 0, ShardingConstraint},
           OpRow{"sdy.sharded_to_unreduced", 1, 1, 0, OutSharding},
           OpRow{"sdy.sharding_constraint", 1, 1, 0, ShardingConstraint},
           OpRow{"sdy.sharding_group", 1, 0, 0, ShardingGroup},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo
