// Random numbers, Fourier transforms, linear algebra, batch normalisation.
#include <utility>

#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::Opcode;

// The type the numbers are drawn in: devices' compilers know how for no narrower ones, and some abort.
DType DrawnAs(DType dtype) {
  if (IsFloat(dtype)) return BitWidth(dtype) < 16 ? DType::kF32 : dtype;
  if (dtype == DType::kPred) return DType::kU32;
  if (!IsInteger(dtype) || BitWidth(dtype) >= 32) return dtype;
  return IsSigned(dtype) ? DType::kS32 : DType::kU32;
}

// The result type has the shape that operand 2 gives.
absl::Status Rng(OpContext& context) {
  GW_ASSIGN_OR_RETURN(uint64_t distribution,
                      context.op().Enum("rng_distribution", bytecode::EnumKind::kRngDistribution, 3));
  const hlo::RngAttr attr{static_cast<hlo::RngDistribution>(distribution)};
  const Shape& shape = context.result_shape();
  const DType drawn = DrawnAs(shape.dtype());
  if (drawn == shape.dtype()) return context.FinishWith(Opcode::kRng, {context.operand(0), context.operand(1)}, attr);
  std::vector<hlo::Instruction*> bounds;
  for (size_t i = 0; i < 2; ++i) {
    bounds.push_back(context.Emit(Opcode::kConvert, Shape::Scalar(drawn), {context.operand(i)}));
  }
  hlo::Instruction* numbers = context.Emit(Opcode::kRng, Shape(drawn, shape.dims()), std::move(bounds), attr);
  return context.FinishWith(Opcode::kConvert, {numbers});
}

absl::Status RngBitGenerator(OpContext& context) {
  GW_ASSIGN_OR_RETURN(uint64_t algorithm, context.op().Enum("rng_algorithm", bytecode::EnumKind::kRngAlgorithm, 3));
  return context.FinishWith(Opcode::kRngBitGenerator, context.operands(),
                            hlo::RngBitGeneratorAttr{static_cast<hlo::RngAlgorithm>(algorithm)});
}

absl::Status Fft(OpContext& context) {
  hlo::FftAttr attr;
  GW_ASSIGN_OR_RETURN(uint64_t type, context.op().Enum("fft_type", bytecode::EnumKind::kFftType, 4));
  attr.type = static_cast<hlo::FftType>(type);
  GW_ASSIGN_OR_RETURN(attr.lengths, context.op().Ints("fft_length"));
  return context.FinishWith(Opcode::kFft, context.operands(), std::move(attr));
}

absl::Status Cholesky(OpContext& context) {
  GW_ASSIGN_OR_RETURN(bool lower, context.op().Bool("lower"));
  return context.FinishWith(Opcode::kCholesky, context.operands(), hlo::CholeskyAttr{lower});
}

absl::Status TriangularSolve(OpContext& context) {
  hlo::TriangularSolveAttr attr;
  GW_ASSIGN_OR_RETURN(attr.left_side, context.op().Bool("left_side"));
  GW_ASSIGN_OR_RETURN(attr.lower, context.op().Bool("lower"));
  GW_ASSIGN_OR_RETURN(attr.unit_diagonal, context.op().Bool("unit_diagonal"));
  GW_ASSIGN_OR_RETURN(uint64_t transposition, context.op().Enum("transpose_a", bytecode::EnumKind::kTranspose, 4));
  attr.transpose_a = static_cast<hlo::Transposition>(transposition);
  return context.FinishWith(Opcode::kTriangularSolve, context.operands(), attr);
}

template <Opcode opcode>
absl::Status BatchNorm(OpContext& context) {
  hlo::BatchNormAttr attr;
  GW_ASSIGN_OR_RETURN(const bytecode::FloatAttr* epsilon, context.op().As<bytecode::FloatAttr>("epsilon"));
  GW_ASSIGN_OR_RETURN(DType dtype, ElementType(context.program().entries(), epsilon->type));
  const uint64_t bits = epsilon->bits;
  attr.epsilon = static_cast<float>(ElementAsDouble(dtype, reinterpret_cast<const char*>(&bits)));
  GW_ASSIGN_OR_RETURN(attr.feature, context.op().Int("feature_index"));
  return context.FinishWith(opcode, context.operands(), attr);
}

}  // namespace

void AddNumericOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.batch_norm_grad_v1", 5, 3, 0, BatchNorm<Opcode::kBatchNormGrad>},
           OpRow{"vhlo.batch_norm_inference_v1", 5, 1, 0, BatchNorm<Opcode::kBatchNormInference>},
           OpRow{"vhlo.batch_norm_training_v1", 3, 3, 0, BatchNorm<Opcode::kBatchNormTraining>},
           OpRow{"vhlo.cholesky_v1", 1, 1, 0, Cholesky},
           OpRow{"vhlo.fft_v1", 1, 1, 0, Fft},
           OpRow{"vhlo.rng_bit_generator_v1", 1, 2, 0, RngBitGenerator},
           OpRow{"vhlo.rng_v1", 3, 1, 0, Rng},
           OpRow{"vhlo.triangular_solve_v1", 2, 1, 0, TriangularSolve},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo
