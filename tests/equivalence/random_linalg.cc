// Random programs: factorizations, solves and transforms, along dimensions that stay whole.
#include "gangway/hlo/builder.h"
#include "tests/equivalence/random_generator.h"

namespace gangway::equivalence {

using hlo::Instruction;
using hlo::Opcode;

// x xT + 4 I for the last dimension of x as rows of one element: well conditioned.
Instruction* Generator::PositiveDefinite() {
  Instruction* x = AnyOfRank(1);
  if (x == nullptr || x->shape().rank() > 2 || x->shape().dtype() != DType::kF32) return nullptr;
  x = Tamed(x);
  DimVector dims = x->shape().dims();
  const int64_t rank = x->shape().rank(), n = dims.back();
  dims.push_back(n);
  const Shape square(DType::kF32, dims);
  DimVector rows, columns;
  for (int64_t d = 0; d < rank; ++d) {
    rows.push_back(d);
    columns.push_back(d + 1 < rank ? d : d + 1);
  }
  Instruction* product = builder_->Binary(Opcode::kMultiply, builder_->Broadcast(x, square, rows),
                                          builder_->Broadcast(x, square, columns));
  const Shape index = WithDType(square, DType::kS32);
  Instruction* diagonal =
      builder_->Compare(hlo::ComparisonDirection::kEq, builder_->Iota(index, rank - 1), builder_->Iota(index, rank));
  return builder_->Binary(Opcode::kAdd, product,
                          builder_->Select(diagonal, builder_->Splat(square, 4), builder_->Splat(square, 0)));
}

Instruction* Generator::Cholesky() {
  Instruction* matrix = PositiveDefinite();
  return matrix == nullptr ? nullptr : builder_->Add(Opcode::kCholesky, {matrix}, hlo::CholeskyAttr{true});
}

Instruction* Generator::TriangularSolve() {
  Instruction* matrix = PositiveDefinite();
  if (matrix == nullptr) return nullptr;
  hlo::TriangularSolveAttr attr;
  attr.left_side = Chance(50);
  attr.lower = Chance(50);
  attr.transpose_a = Chance(50) ? hlo::Transposition::kNone : hlo::Transposition::kTranspose;
  DimVector dims = matrix->shape().dims();
  (attr.left_side ? dims[dims.size() - 1] : dims[dims.size() - 2]) = 1 + Below(4);
  return builder_->Add(Opcode::kTriangularSolve, {matrix, Tamed(Filled(Shape(DType::kF32, dims)))}, attr);
}

// The real part of a transform.
Instruction* Generator::Fft() {
  Instruction* x = AnyOfRank(1);
  if (x == nullptr || x->shape().dtype() != DType::kF32) return nullptr;
  x = Tamed(x);
  hlo::FftAttr attr;
  attr.type = Chance(50) ? hlo::FftType::kFft : hlo::FftType::kIfft;
  const int64_t rank = x->shape().rank(), transformed = 1 + Below(std::min<int64_t>(2, rank));
  for (int64_t d = rank - transformed; d < rank; ++d) attr.lengths.push_back(x->shape().dim(d));
  Instruction* complex = builder_->Binary(Opcode::kComplex, x, builder_->Splat(x->shape(), 0));
  return builder_->Unary(Opcode::kReal, builder_->Add(Opcode::kFft, {complex}, attr));
}

}  // namespace gangway::equivalence
