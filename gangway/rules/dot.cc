// Matrix products.
#include "gangway/rules/family.h"

namespace gangway::rules {

OpRule DotRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const auto& dot = instruction.attr<hlo::DotAttr>();
  const Shape &lhs = rule.operand(0), &rhs = rule.operand(1);
  int64_t out = 0;
  for (size_t i = 0; i < dot.lhs_batch.size(); ++i) {
    const int batch = rule.AddFactor(lhs.dim(dot.lhs_batch[i]), FactorKind::kPassThrough);
    rule.Operand(0, dot.lhs_batch[i], batch);
    rule.Operand(1, dot.rhs_batch[i], batch);
    rule.Result(0, out++, batch);
  }
  for (int64_t dim = 0; dim < lhs.rank(); ++dim) {
    if (Has(dot.lhs_batch, dim) || Has(dot.lhs_contracting, dim)) continue;
    const int free = rule.AddFactor(lhs.dim(dim), FactorKind::kPassThrough);
    rule.Operand(0, dim, free);
    rule.Result(0, out++, free);
  }
  for (int64_t dim = 0; dim < rhs.rank(); ++dim) {
    if (Has(dot.rhs_batch, dim) || Has(dot.rhs_contracting, dim)) continue;
    const int free = rule.AddFactor(rhs.dim(dim), FactorKind::kPassThrough);
    rule.Operand(1, dim, free);
    rule.Result(0, out++, free);
  }
  for (size_t i = 0; i < dot.lhs_contracting.size(); ++i) {
    const int contracting = rule.AddFactor(lhs.dim(dot.lhs_contracting[i]), FactorKind::kReduction);
    rule.Operand(0, dot.lhs_contracting[i], contracting);
    rule.Operand(1, dot.rhs_contracting[i], contracting);
  }
  return rule.Take();
}

OpRule RaggedDotRule(const hlo::Instruction&) {
  return Unsupported("group sizes of a ragged dot are known at run time only");
}

}  // namespace gangway::rules
