// Random programs: elementwise operations.
#include <algorithm>
#include <numeric>

#include "gangway/hlo/builder.h"
#include "tests/equivalence/random_generator.h"

namespace gangway::equivalence {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

// Keeps numbers small: products of products would overflow floats.
Instruction* Generator::Tamed(Instruction* x) {
  if (IsFloat(x->shape().dtype())) return builder_->Unary(Opcode::kTanh, x);
  return builder_->Binary(Opcode::kAnd, x, builder_->Splat(x->shape(), 15));
}

Instruction* Generator::Elementwise() {
  Instruction* x = Any();
  static constexpr Opcode kOps[] = {Opcode::kAdd, Opcode::kSubtract, Opcode::kMultiply, Opcode::kMaximum,
                                    Opcode::kMinimum};
  switch (Below(6)) {
    case 0:
      return IsUnsigned(x->shape().dtype()) ? Tamed(x) : builder_->Unary(Opcode::kNegate, x);
    case 1:
      return builder_->Convert(x, RandomType());
    case 2: {
      Instruction* y = Like(x->shape());
      return builder_->Select(builder_->Compare(hlo::ComparisonDirection::kLt, x, y), y, Like(x->shape()));
    }
    case 3:
      return Tamed(x);
    default:
      return builder_->Binary(kOps[Below(5)], x, Like(x->shape()));
  }
}

// A scalar that chooses or bounds.
Instruction* Generator::Choice() {
  Instruction* x = Any();
  const DType dtype = x->shape().dtype();
  if (Chance(50)) {
    return builder_->Add(Opcode::kClamp, {builder_->Scalar(dtype, 0), x, builder_->Scalar(dtype, 3)});
  }
  return builder_->Select(Predicate(Any()), x, Like(x->shape()));
}

// Random bits depend on the state only, not on how they are split.
Instruction* Generator::RandomBits() {
  Shape shape = RandomShape();
  if (shape.rank() == 0) return nullptr;
  Instruction* state = builder_->Constant(
      Literal::FromSpan<uint64_t>(DType::kU64, {2}, std::vector<uint64_t>{static_cast<uint64_t>(Below(1000)), 7}));
  hlo::RngBitGeneratorAttr attr;
  attr.algorithm = Chance(50) ? hlo::RngAlgorithm::kThreeFry : hlo::RngAlgorithm::kPhilox;
  const Shape bits = WithDType(shape, DType::kU32);
  Instruction* made = builder_->Add(Opcode::kRngBitGenerator, {state}, attr, {}, Shape::Tuple({state->shape(), bits}));
  return Tamed(builder_->Convert(builder_->GetTupleElement(made, 1), DType::kS32));
}

}  // namespace gangway::equivalence
