// Operations that work element by element.
#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::Opcode;

template <Opcode opcode>
absl::Status Elementwise(OpContext& context) {
  return context.FinishWith(opcode, context.operands());
}

template <Opcode opcode>
OpRow Unary(absl::string_view name) {
  return {name, 1, 1, 0, Elementwise<opcode>};
}
template <Opcode opcode>
OpRow Binary(absl::string_view name) {
  return {name, 2, 1, 0, Elementwise<opcode>};
}

absl::Status Compare(OpContext& context) {
  hlo::CompareAttr attr;
  GW_ASSIGN_OR_RETURN(uint64_t direction,
                      context.op().Enum("comparison_direction", bytecode::EnumKind::kComparisonDirection, 6));
  GW_ASSIGN_OR_RETURN(uint64_t type, context.op().Enum("compare_type", bytecode::EnumKind::kComparisonType, 5));
  // Both enums have the order of ours.
  attr.direction = static_cast<hlo::ComparisonDirection>(direction);
  attr.type = static_cast<hlo::ComparisonType>(type);
  return context.FinishWith(Opcode::kCompare, context.operands(), attr);
}

// HLO converts complex numbers to complex numbers only.
absl::Status Convert(OpContext& context) {
  hlo::Instruction* x = context.operand(0);
  const DType from = x->shape().dtype();
  const DType to = context.result_shape().dtype();
  if (IsComplex(from) && !IsComplex(to)) {
    x = context.Emit(Opcode::kReal, WithDType(x->shape(), from == DType::kC64 ? DType::kF32 : DType::kF64), {x});
    if (x->shape().dtype() == to) return context.FinishValues({x});
  }
  return context.FinishWith(Opcode::kConvert, {x});
}

absl::Status ReducePrecision(OpContext& context) {
  GW_ASSIGN_OR_RETURN(int64_t exponent, context.op().Int("exponent_bits"));
  GW_ASSIGN_OR_RETURN(int64_t mantissa, context.op().Int("mantissa_bits"));
  if (exponent < 1 || exponent > 64) return OpContext::Error("attribute exponent_bits: out of range");
  if (mantissa < 0 || mantissa > 64) return OpContext::Error("attribute mantissa_bits: out of range");
  return context.FinishWith(Opcode::kReducePrecision, context.operands(),
                            hlo::ReducePrecisionAttr{static_cast<int>(exponent), static_cast<int>(mantissa)});
}

// Of a real number it is the number itself.
absl::Status Real(OpContext& context) {
  if (!IsComplex(context.operand(0)->shape().dtype())) return context.FinishValues({context.operand(0)});
  return context.FinishWith(Opcode::kReal, context.operands());
}

absl::Status Imag(OpContext& context) {
  const Shape& shape = context.operand(0)->shape();
  if (IsComplex(shape.dtype())) return context.FinishWith(Opcode::kImag, context.operands());
  if (!shape.IsArray()) return OpContext::Error("operand is no array");
  hlo::Instruction* zero = context.EmitScalar(shape.dtype(), 0);
  return context.FinishWith(Opcode::kBroadcast, {zero}, hlo::DimensionsAttr{});
}

// HLO's select takes a predicate of the operands' shape.
absl::Status Select(OpContext& context) {
  hlo::Instruction* predicate = context.operand(0);
  const Shape& shape = context.result_shape();
  if (predicate->shape().IsArray() && predicate->shape().rank() == 0 && shape.rank() != 0) {
    predicate = context.Emit(Opcode::kBroadcast, WithDType(WithoutLayout(shape), DType::kPred), {predicate},
                             hlo::DimensionsAttr{});
  }
  return context.FinishWith(Opcode::kSelect, {predicate, context.operand(1), context.operand(2)});
}

}  // namespace

void AddElementwiseOps(OpTable& table) {
  for (const OpRow& row : {
           Unary<Opcode::kAbs>("vhlo.abs_v1"),
           Unary<Opcode::kBitcastConvert>("vhlo.bitcast_convert_v1"),
           Unary<Opcode::kCbrt>("vhlo.cbrt_v1"),
           Unary<Opcode::kCbrt>("vhlo.cbrt_v2"),
           Unary<Opcode::kCeil>("vhlo.ceil_v1"),
           Unary<Opcode::kCountLeadingZeros>("vhlo.count_leading_zeros_v1"),
           Unary<Opcode::kCosine>("vhlo.cosine_v1"),
           Unary<Opcode::kCosine>("vhlo.cosine_v2"),
           Unary<Opcode::kExponential>("vhlo.exponential_v1"),
           Unary<Opcode::kExponential>("vhlo.exponential_v2"),
           Unary<Opcode::kExponentialMinusOne>("vhlo.exponential_minus_one_v1"),
           Unary<Opcode::kExponentialMinusOne>("vhlo.exponential_minus_one_v2"),
           Unary<Opcode::kFloor>("vhlo.floor_v1"),
           Unary<Opcode::kIsFinite>("vhlo.is_finite_v1"),
           Unary<Opcode::kLog>("vhlo.log_v1"),
           Unary<Opcode::kLog>("vhlo.log_v2"),
           Unary<Opcode::kLogPlusOne>("vhlo.log_plus_one_v1"),
           Unary<Opcode::kLogPlusOne>("vhlo.log_plus_one_v2"),
           Unary<Opcode::kLogistic>("vhlo.logistic_v1"),
           Unary<Opcode::kLogistic>("vhlo.logistic_v2"),
           Unary<Opcode::kNegate>("vhlo.negate_v1"),
           Unary<Opcode::kNot>("vhlo.not_v1"),
           Unary<Opcode::kPopulationCount>("vhlo.popcnt_v1"),
           Unary<Opcode::kRoundNearestAfz>("vhlo.round_nearest_afz_v1"),
           Unary<Opcode::kRoundNearestEven>("vhlo.round_nearest_even_v1"),
           Unary<Opcode::kRsqrt>("vhlo.rsqrt_v1"),
           Unary<Opcode::kRsqrt>("vhlo.rsqrt_v2"),
           Unary<Opcode::kSign>("vhlo.sign_v1"),
           Unary<Opcode::kSine>("vhlo.sine_v1"),
           Unary<Opcode::kSine>("vhlo.sine_v2"),
           Unary<Opcode::kSqrt>("vhlo.sqrt_v1"),
           Unary<Opcode::kSqrt>("vhlo.sqrt_v2"),
           Unary<Opcode::kTan>("vhlo.tan_v1"),
           Unary<Opcode::kTan>("vhlo.tan_v2"),
           Unary<Opcode::kTanh>("vhlo.tanh_v1"),
           Unary<Opcode::kTanh>("vhlo.tanh_v2"),
           Binary<Opcode::kAdd>("vhlo.add_v1"),
           Binary<Opcode::kAnd>("vhlo.and_v1"),
           Binary<Opcode::kAtan2>("vhlo.atan2_v1"),
           Binary<Opcode::kComplex>("vhlo.complex_v1"),
           Binary<Opcode::kDivide>("vhlo.divide_v1"),
           Binary<Opcode::kMaximum>("vhlo.maximum_v1"),
           Binary<Opcode::kMinimum>("vhlo.minimum_v1"),
           Binary<Opcode::kMultiply>("vhlo.multiply_v1"),
           Binary<Opcode::kOr>("vhlo.or_v1"),
           Binary<Opcode::kPower>("vhlo.power_v1"),
           Binary<Opcode::kRemainder>("vhlo.remainder_v1"),
           Binary<Opcode::kShiftLeft>("vhlo.shift_left_v1"),
           Binary<Opcode::kShiftRightArithmetic>("vhlo.shift_right_arithmetic_v1"),
           Binary<Opcode::kShiftRightLogical>("vhlo.shift_right_logical_v1"),
           Binary<Opcode::kSubtract>("vhlo.subtract_v1"),
           Binary<Opcode::kXor>("vhlo.xor_v1"),
           OpRow{"vhlo.clamp_v1", 3, 1, 0, Elementwise<Opcode::kClamp>},
           OpRow{"vhlo.compare_v1", 2, 1, 0, Compare},
           OpRow{"vhlo.convert_v1", 1, 1, 0, Convert},
           OpRow{"vhlo.imag_v1", 1, 1, 0, Imag},
           OpRow{"vhlo.real_v1", 1, 1, 0, Real},
           OpRow{"vhlo.reduce_precision_v1", 1, 1, 0, ReducePrecision},
           OpRow{"vhlo.select_v1", 3, 1, 0, Select},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo
