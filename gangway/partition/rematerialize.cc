#include "gangway/partition/rematerialize.h"

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/context.h"

namespace gangway::partition {

using hlo::Instruction;
using hlo::Opcode;

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

std::optional<Sharding> BroadcastOperand(const LocalValue& value, const Sharding& to) {
  if (value.origin == nullptr || value.origin->opcode() != Opcode::kBroadcast) return std::nullopt;
  if (!value.sharding.unreduced.empty() || !to.unreduced.empty()) return std::nullopt;
  Sharding operand = Sharding::Replicated(to.mesh, value.origin->operand(0)->shape().rank()).Closed();
  const DimVector& dims = value.origin->attr<hlo::DimensionsAttr>().dims;
  for (size_t d = 0; d < dims.size(); ++d) operand.dims[d].axes = to.dims[dims[d]].axes;
  operand.manual = to.manual;
  return operand;
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
  const int64_t dim = origin.attr<hlo::DimensionsAttr>().dims[0];
  if (!to.IsSplit(dim)) return builder.Iota(shape, dim);
  const Shape line(shape.dtype(), {shape.dim(dim)});
  Instruction* offset = builder.Convert(context->ShardOffset(to, value.global, dim), shape.dtype());
  Instruction* places = builder.Binary(Opcode::kAdd, builder.Iota(line, 0), builder.BroadcastScalar(offset, line));
  return shape.rank() == 1 ? places : builder.Broadcast(places, shape, {dim});
}

}  // namespace gangway::partition
