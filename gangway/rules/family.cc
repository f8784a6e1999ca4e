#include "gangway/rules/family.h"

#include <algorithm>

namespace gangway::rules {

RuleBuilder::RuleBuilder(const hlo::Instruction& instruction)
    : instruction_(instruction), leaves_(Leaves(instruction.shape())) {
  for (const hlo::Instruction* operand : instruction.operands()) {
    rule_.operands.emplace_back(operand->shape().rank());
  }
  for (const Shape& leaf : leaves_) rule_.results.emplace_back(leaf.rank());
}

int RuleBuilder::AddFactor(int64_t size, FactorKind kind, Reduction reduction) {
  rule_.factors.push_back({size, kind, reduction});
  return static_cast<int>(rule_.factors.size()) - 1;
}

void RuleBuilder::Append(std::vector<ValueFactors>* values, int i, int64_t dim, int factor) {
  (*values)[i][dim].push_back(factor);
}

void RuleBuilder::AllOperands(int64_t dim, int factor) {
  for (int i = 0; i < operand_count(); ++i) {
    if (operand(i).rank() > dim) Operand(i, dim, factor);
  }
}

void RuleBuilder::AllResults(int64_t dim, int factor) {
  for (int i = 0; i < result_count(); ++i) {
    if (result(i).rank() > dim) Result(i, dim, factor);
  }
}

void RuleBuilder::Everywhere(int64_t dim, FactorKind kind) {
  const int factor = AddFactor(result().dim(dim), kind);
  AllOperands(dim, factor);
  AllResults(dim, factor);
}

void RuleBuilder::Complete(const Shape& shape, ValueFactors* value) {
  for (int64_t dim = 0; dim < shape.rank(); ++dim) {
    if ((*value)[dim].empty() && shape.dim(dim) != 1) {
      (*value)[dim].push_back(AddFactor(shape.dim(dim), FactorKind::kNeedReplication));
    }
  }
}

OpRule RuleBuilder::Take() {
  for (int i = 0; i < operand_count(); ++i) Complete(operand(i), &rule_.operands[i]);
  for (int i = 0; i < result_count(); ++i) Complete(result(i), &rule_.results[i]);
  return std::move(rule_);
}

}  // namespace gangway::rules
