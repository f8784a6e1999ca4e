// Operations that make values out of positions or states: a shard must know where it lies.
#include "gangway/rules/family.h"

namespace gangway::rules {

// Not reproducible by shards: the stream of a device has one order.
OpRule RngRule(const hlo::Instruction& instruction) {
  return Unsupported("random numbers of a stateful generator have one order");
}

// Operand and first result: the state, needed whole. Second result: the bits, a function of state and position.
OpRule RngBitGeneratorRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const int bits = rule.result_count() - 1;
  for (int64_t dim = 0; dim < rule.result(bits).rank(); ++dim) {
    rule.Result(bits, dim, rule.AddFactor(rule.result(bits).dim(dim), FactorKind::kPermutation));
  }
  return rule.Take();
}

OpRule IotaRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const int64_t counted = instruction.attr<hlo::DimensionsAttr>().dims[0];
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    rule.Everywhere(dim, dim == counted ? FactorKind::kPermutation : FactorKind::kPassThrough);
  }
  return rule.Take();
}

}  // namespace gangway::rules
