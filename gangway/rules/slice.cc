// Operations that take or place parts: dimensions they leave whole pass through.
#include <algorithm>

#include "gangway/rules/family.h"

namespace gangway::rules {

OpRule SliceRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    const int64_t extent = rule.operand(0).dim(dim);
    const bool whole = rule.result().dim(dim) == extent;  // of one stride then: starts at 0, ends at the end
    const int factor = rule.AddFactor(extent, whole ? FactorKind::kPassThrough : FactorKind::kPermutation);
    rule.Operand(0, dim, factor);
    rule.Result(0, dim, factor);
  }
  return rule.Take();
}

OpRule PadRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const auto& pad = instruction.attr<hlo::PadAttr>();
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    const bool whole = pad.dims[dim] == hlo::PadDim{};
    const int factor = rule.AddFactor(std::max(rule.operand(0).dim(dim), rule.result().dim(dim)),
                                      whole ? FactorKind::kPassThrough : FactorKind::kPermutation);
    rule.Operand(0, dim, factor);
    rule.Result(0, dim, factor);
  }
  return rule.Take();
}

OpRule ConcatenateRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const int64_t joined = instruction.attr<hlo::DimensionsAttr>().dims[0];
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    const bool whole = dim != joined || rule.operand_count() == 1;
    rule.Everywhere(dim, whole ? FactorKind::kPassThrough : FactorKind::kPermutation);
  }
  return rule.Take();
}

OpRule ReverseRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const DimVector& reversed = instruction.attr<hlo::DimensionsAttr>().dims;
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    rule.Everywhere(dim, Has(reversed, dim) ? FactorKind::kPermutation : FactorKind::kPassThrough);
  }
  return rule.Take();
}

// Operands: the array, then one scalar start a dimension (or one vector of them, which is needed whole). A dimension
// that is cut has no common index: where the cut falls is known at run time only.
OpRule DynamicSliceRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    if (rule.operand(0).dim(dim) != rule.result().dim(dim)) continue;
    const int factor = rule.AddFactor(rule.result().dim(dim), FactorKind::kPassThrough);
    rule.Operand(0, dim, factor);
    rule.Result(0, dim, factor);
  }
  return rule.Take();
}

// Operands: the array, the update, the starts. Array and result are the same index everywhere.
OpRule DynamicUpdateSliceRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    const bool whole = rule.operand(1).dim(dim) == rule.result().dim(dim);
    const int factor =
        rule.AddFactor(rule.result().dim(dim), whole ? FactorKind::kPassThrough : FactorKind::kPermutation);
    rule.Operand(0, dim, factor);
    if (whole) rule.Operand(1, dim, factor);
    rule.Result(0, dim, factor);
  }
  return rule.Take();
}

// get-dimension-size has a scalar result; set-dimension-size keeps the array and bounds one dimension of it.
OpRule DimensionSizeRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  if (instruction.opcode() == hlo::Opcode::kGetDimensionSize) return rule.Take();
  const int64_t bounded = instruction.attr<hlo::DimensionAttr>().dimension;
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    const int factor =
        rule.AddFactor(rule.result().dim(dim), dim == bounded ? FactorKind::kPermutation : FactorKind::kPassThrough);
    rule.Operand(0, dim, factor);
    rule.Result(0, dim, factor);
  }
  return rule.Take();
}

}  // namespace gangway::rules
