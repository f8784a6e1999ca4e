// Collectives that the user wrote, in manual regions: they work along manual axes, so over the axes left to us they are
// elementwise but for the dimension they gather, scatter or exchange.
#include "gangway/rules/family.h"

namespace gangway::rules {

OpRule CollectiveRule(const hlo::Instruction& instruction) {
  if (instruction.opcode() == hlo::Opcode::kRaggedAllToAll) {
    return Unsupported("sizes of a ragged all-to-all are known at run time only");
  }
  const auto& collective = instruction.attr<hlo::CollectiveAttr>();
  const bool variadic = instruction.operand_count() > 1;
  // One result an operand, each its own shape: factors per pair.
  RuleBuilder rule(instruction);
  if (variadic && rule.result_count() != rule.operand_count()) return Unsupported("a collective of unlike operands");
  for (int i = 0; i < rule.operand_count(); ++i) {
    for (int64_t dim = 0; dim < rule.operand(i).rank(); ++dim) {
      const bool whole = rule.operand(i).dim(dim) == rule.result(i).dim(dim) &&
                         (!collective.dimension || *collective.dimension != dim);
      const int factor = rule.AddFactor(std::max(rule.operand(i).dim(dim), rule.result(i).dim(dim)),
                                        whole ? FactorKind::kPassThrough : FactorKind::kNeedReplication);
      rule.Operand(i, dim, factor);
      rule.Result(i, dim, factor);
    }
  }
  return rule.Take();
}

}  // namespace gangway::rules
