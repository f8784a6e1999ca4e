#include "gangway/partition/rematerialize.h"

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/context.h"
#include "gangway/partition/generic.h"
#include "gangway/rules/rule.h"

namespace gangway::partition {

using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr int kMaxSteps = 32;

// Done on every device without much ado.
bool IsRepeatable(Opcode opcode) {
  switch (opcode) {
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kConcatenate:
    case Opcode::kSlice:
    case Opcode::kPad:
    case Opcode::kReverse:
    case Opcode::kClamp:
      return true;
    default:
      return hlo::IsElementwise(opcode);
  }
}

// The shard of an iota.
Instruction* PlacesAlong(int64_t dim, const Shape& shape, const Sharding& sharding, const Shape& global,
                         Context* context) {
  hlo::Builder& builder = context->builder();
  if (!sharding.IsSplit(dim)) return builder.Iota(shape, dim);
  // Sums of floats would be rounded once more than the places themselves.
  const Shape line(IsInteger(shape.dtype()) ? shape.dtype() : DType::kS32, {shape.dim(dim)});
  Instruction* offset = builder.Convert(context->ShardOffset(sharding, global, dim), line.dtype());
  Instruction* places = builder.Binary(Opcode::kAdd, builder.Iota(line, 0), builder.BroadcastScalar(offset, line));
  places = builder.Convert(places, shape.dtype());
  return shape.rank() == 1 ? places : builder.Broadcast(places, shape, {dim});
}

}  // namespace

bool IsCheapToRemake(const LocalValue& value) {
  if (value.origin == nullptr || !value.sharding.unreduced.empty()) return false;
  switch (value.origin->opcode()) {
    case Opcode::kConstant:
      return value.origin->attr<hlo::ConstantAttr>().literal->IsSplat();
    case Opcode::kIota:
      return true;
    case Opcode::kBroadcast:
      return value.origin->operand(0)->shape().rank() == 0;
    default:
      return false;
  }
}

int StepsToRemake(const Instruction& instruction, const Context& context) {
  if (!IsRepeatable(instruction.opcode()) || !instruction.shape().IsArray()) return 0;
  int steps = 1;
  for (const Instruction* operand : instruction.operands()) {
    if (!operand->shape().IsArray()) return 0;
    const LocalValue& value = context.Value(*operand);
    if (IsCheapToRemake(value)) {
      ++steps;
    } else if (!value.sharding.IsReplicated()) {
      const int own = context.StepsToRemake(value);
      if (own == 0) return 0;
      steps += own;
    }
  }
  return steps <= kMaxSteps ? steps : 0;
}

std::optional<Shardings> OperandsToRemake(const LocalValue& value, const Sharding& to) {
  if (value.origin == nullptr || !value.sharding.unreduced.empty() || !to.unreduced.empty()) return std::nullopt;
  const absl::StatusOr<rules::OpRule> rule = rules::RuleFor(*value.origin);
  if (!rule.ok() || rule->form != rules::RuleForm::kFactors) return std::nullopt;
  const std::vector<AxisList> axes = ToFactors(*rule, rule->results[0], to);
  for (size_t f = 0; f < axes.size(); ++f) {
    if (!axes[f].empty() && rule->factors[f].kind != rules::FactorKind::kPassThrough) return std::nullopt;
  }
  Sharding result;
  if (!FromFactors(*rule, rule->results[0], axes, to.mesh, &result)) return std::nullopt;
  for (int64_t d = 0; d < to.rank(); ++d) {
    if (result.dims[d].axes != to.dims[d].axes) return std::nullopt;
  }
  Shardings operands;
  for (const rules::ValueFactors& dims : rule->operands) {
    if (!FromFactors(*rule, dims, axes, to.mesh, &operands.emplace_back())) return std::nullopt;
    operands.back().manual = to.manual;
  }
  return operands;
}

absl::StatusOr<Instruction*> RemakeFromOperands(Context* context, const LocalValue& value, const Sharding& to) {
  const Instruction& origin = *value.origin;
  const std::optional<Shardings> operands = OperandsToRemake(value, to);
  if (!operands) return absl::InternalError("a value that cannot be made again");
  std::vector<Instruction*> locals;
  for (size_t i = 0; i < operands->size(); ++i) {
    const LocalValue operand = context->Value(*origin.operand(static_cast<int64_t>(i)));
    GW_ASSIGN_OR_RETURN(Instruction * local, context->Reshard(operand, (*operands)[i]));
    locals.push_back(local);
  }
  OpPlan plan;
  plan.operands = *operands;
  plan.results = {to};
  return LocalClone(origin, plan, std::move(locals), *context);
}

absl::StatusOr<Instruction*> Remake(Context* context, const LocalValue& value, const Sharding& to) {
  hlo::Builder& builder = context->builder();
  const Instruction& origin = *value.origin;
  if (!to.unreduced.empty()) return absl::InternalError("a remade value cannot hold partial results");
  const Shape shape = ShardShape(value.global, to);
  if (origin.opcode() == Opcode::kBroadcast) {
    GW_ASSIGN_OR_RETURN(Instruction * scalar, context->Replicate(context->Value(*origin.operand(0))));
    return builder.BroadcastScalar(scalar, shape);
  }
  if (origin.opcode() == Opcode::kConstant) {
    const Literal& literal = *origin.attr<hlo::ConstantAttr>().literal;
    const int64_t width = ByteWidth(shape.dtype());
    Literal scalar(Shape::Scalar(shape.dtype()), std::vector<char>(literal.data(), literal.data() + width));
    return builder.BroadcastScalar(builder.Constant(std::move(scalar)), shape);
  }
  return PlacesAlong(origin.attr<hlo::DimensionsAttr>().dims[0], shape, to, value.global, context);
}

}  // namespace gangway::partition
