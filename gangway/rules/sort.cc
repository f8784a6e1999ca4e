// Sorting: the sorted dimension is needed whole, the others are batch.
#include "gangway/rules/family.h"

namespace gangway::rules {

OpRule SortRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const int64_t sorted = instruction.attr<hlo::SortAttr>().dimension;
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    rule.Everywhere(dim, dim == sorted ? FactorKind::kNeedReplication : FactorKind::kPassThrough);
  }
  return rule.Take();
}

// The k largest of the last dimension.
OpRule TopKRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  for (int64_t dim = 0; dim + 1 < rule.result().rank(); ++dim) rule.Everywhere(dim, FactorKind::kPassThrough);
  return rule.Take();
}

}  // namespace gangway::rules
