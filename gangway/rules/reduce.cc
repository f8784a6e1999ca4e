// Reductions and the monoids they combine by.
#include "gangway/rules/family.h"

namespace gangway::rules {

std::optional<Reduction> ReductionOf(const hlo::Computation& computation) {
  const hlo::Instruction* root = computation.root();
  if (computation.parameters().size() != 2 || root == nullptr || root->operand_count() != 2) return std::nullopt;
  const hlo::Instruction *a = root->operand(0), *b = root->operand(1);
  if (a == b || a->opcode() != hlo::Opcode::kParameter || b->opcode() != hlo::Opcode::kParameter) return std::nullopt;
  switch (root->opcode()) {
    case hlo::Opcode::kAdd:
      return root->shape().dtype() == DType::kPred ? Reduction::kOr : Reduction::kSum;
    case hlo::Opcode::kMultiply:
      return root->shape().dtype() == DType::kPred ? Reduction::kAnd : Reduction::kProduct;
    case hlo::Opcode::kMaximum:
      return Reduction::kMax;
    case hlo::Opcode::kMinimum:
      return Reduction::kMin;
    case hlo::Opcode::kAnd:
      return Reduction::kAnd;
    case hlo::Opcode::kOr:
      return Reduction::kOr;
    default:
      return std::nullopt;
  }
}

// Operands: N arrays, then N init values.
OpRule ReduceRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const DimVector& reduced = instruction.attr<hlo::DimensionsAttr>().dims;
  const int arrays = rule.operand_count() / 2;
  std::optional<Reduction> reduction;
  if (arrays == 1) reduction = ReductionOf(*instruction.called()[0]);
  int64_t out = 0;
  for (int64_t dim = 0; dim < rule.operand(0).rank(); ++dim) {
    const bool kept = !Has(reduced, dim);
    const FactorKind kind = kept        ? FactorKind::kPassThrough
                            : reduction ? FactorKind::kReduction
                                        : FactorKind::kNeedReplication;
    const int factor = rule.AddFactor(rule.operand(0).dim(dim), kind, reduction.value_or(Reduction::kSum));
    for (int i = 0; i < arrays; ++i) rule.Operand(i, dim, factor);
    if (kept) rule.AllResults(out++, factor);
  }
  for (int i = arrays; i < rule.operand_count(); ++i) rule.Accumulates(i);
  return rule.Take();
}

}  // namespace gangway::rules
