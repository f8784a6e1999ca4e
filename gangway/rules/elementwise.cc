// Operations whose result element i needs element i of the operands; scalars beside them are whole everywhere.
#include "gangway/rules/family.h"

namespace gangway::rules {

OpRule ElementwiseRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) rule.Everywhere(dim, FactorKind::kPassThrough);
  return rule.Take();
}

// Between element types of different width the last dimension of the narrower one has no counterpart.
OpRule BitcastConvertRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const int64_t shared = std::min(rule.operand(0).rank(), rule.result().rank());
  for (int64_t dim = 0; dim < shared; ++dim) rule.Everywhere(dim, FactorKind::kPassThrough);
  return rule.Take();
}

// A constant can be made on any device, for any part of it, from its whole value.
OpRule ConstantRule(const hlo::Instruction& instruction) {
  if (!instruction.shape().IsArray()) return Unsupported("a constant that is no array");
  return ElementwiseRule(instruction);
}

// Operands: the array, then one vector over its feature dimension each (the gradient also takes an array last).
// Training and gradient reduce over the other dimensions in ways that are no monoid.
OpRule BatchNormRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const int64_t feature = instruction.attr<hlo::BatchNormAttr>().feature;
  const bool inference = instruction.opcode() == hlo::Opcode::kBatchNormInference;
  const int64_t rank = rule.operand(0).rank();
  for (int64_t dim = 0; dim < rank; ++dim) {
    const FactorKind kind = dim == feature || inference ? FactorKind::kPassThrough : FactorKind::kNeedReplication;
    const int factor = rule.AddFactor(rule.operand(0).dim(dim), kind);
    for (int i = 0; i < rule.operand_count(); ++i) {
      if (rule.operand(i).rank() == rank) rule.Operand(i, dim, factor);
      if (rule.operand(i).rank() == 1 && rank != 1 && dim == feature) rule.Operand(i, 0, factor);
    }
    for (int i = 0; i < rule.result_count(); ++i) {
      if (rule.result(i).rank() == rank) rule.Result(i, dim, factor);
      if (rule.result(i).rank() == 1 && rank != 1 && dim == feature) rule.Result(i, 0, factor);
    }
  }
  return rule.Take();
}

}  // namespace gangway::rules
