// Matrix functions: leading dimensions are batch, the matrix itself is needed whole.
#include "gangway/rules/family.h"

namespace gangway::rules {

OpRule CholeskyRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    rule.Everywhere(dim, dim + 2 < rule.result().rank() ? FactorKind::kPassThrough : FactorKind::kNeedReplication);
  }
  return rule.Take();
}

OpRule RightSidesRule(const hlo::Instruction& instruction, bool left_side) {
  RuleBuilder rule(instruction);
  const int64_t rank = rule.result().rank();
  for (int64_t dim = 0; dim + 2 < rank; ++dim) rule.Everywhere(dim, FactorKind::kPassThrough);
  const int64_t free = left_side ? rank - 1 : rank - 2;
  const int factor = rule.AddFactor(rule.result().dim(free), FactorKind::kPassThrough);
  rule.Operand(1, free, factor);
  rule.Result(0, free, factor);
  return rule.Take();
}

OpRule TriangularSolveRule(const hlo::Instruction& instruction) {
  return RightSidesRule(instruction, instruction.attr<hlo::TriangularSolveAttr>().left_side);
}

OpRule FftRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const int64_t transformed = static_cast<int64_t>(instruction.attr<hlo::FftAttr>().lengths.size());
  const int64_t rank = rule.result().rank();
  for (int64_t dim = 0; dim < rank; ++dim) {
    const bool batch = dim < rank - transformed;
    if (!batch && rule.operand(0).dim(dim) != rule.result().dim(dim)) continue;  // the halved one of real transforms
    rule.Everywhere(dim, batch ? FactorKind::kPassThrough : FactorKind::kNeedReplication);
  }
  return rule.Take();
}

}  // namespace gangway::rules
