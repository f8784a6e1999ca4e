// What the files of this folder share: building rules factor by factor, and the functions of each family.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gangway/hlo/computation.h"
#include "gangway/hlo/instruction.h"
#include "gangway/rules/rule.h"

namespace gangway::rules {

// Collects factors. Dimensions that get none when the rule is taken become factors of their own that need replication.
class RuleBuilder {
 public:
  explicit RuleBuilder(const hlo::Instruction& instruction);

  const Shape& operand(int i) const { return instruction_.operand(i)->shape(); }
  const Shape& result(int leaf = 0) const { return leaves_[leaf]; }
  int operand_count() const { return static_cast<int>(instruction_.operand_count()); }
  int result_count() const { return static_cast<int>(leaves_.size()); }

  int AddFactor(int64_t size, FactorKind kind, Reduction reduction = Reduction::kSum);
  void Operand(int i, int64_t dim, int factor) { Append(&rule_.operands, i, dim, factor); }
  void Result(int leaf, int64_t dim, int factor) { Append(&rule_.results, leaf, dim, factor); }
  void AllOperands(int64_t dim, int factor);  // arrays of the result's rank or more
  void AllResults(int64_t dim, int factor);
  // Dimension `dim` of every operand and result of rank above it is the same index.
  void Everywhere(int64_t dim, FactorKind kind);
  void Accumulates(int operand) { rule_.accumulated.push_back(operand); }

  OpRule Take();

 private:
  void Append(std::vector<ValueFactors>* values, int i, int64_t dim, int factor);
  void Complete(const Shape& shape, ValueFactors* value);

  const hlo::Instruction& instruction_;
  std::vector<Shape> leaves_;
  OpRule rule_;
};

inline bool Has(absl::Span<const int64_t> dims, int64_t dim) {
  for (int64_t d : dims) {
    if (d == dim) return true;
  }
  return false;
}

using RuleFunction = OpRule (*)(const hlo::Instruction&);

// elementwise.cc
OpRule ElementwiseRule(const hlo::Instruction&);
OpRule BitcastConvertRule(const hlo::Instruction&);
OpRule ConstantRule(const hlo::Instruction&);
OpRule BatchNormRule(const hlo::Instruction&);
// dot.cc
OpRule DotRule(const hlo::Instruction&);
OpRule RaggedDotRule(const hlo::Instruction&);
// window.cc
OpRule ConvolutionRule(const hlo::Instruction&);
OpRule ReduceWindowRule(const hlo::Instruction&);
OpRule SelectAndScatterRule(const hlo::Instruction&);
// reshape.cc
OpRule ReshapeRule(const hlo::Instruction&);
OpRule BitcastRule(const hlo::Instruction&);
OpRule TransposeRule(const hlo::Instruction&);
OpRule BroadcastRule(const hlo::Instruction&);
// reduce.cc
OpRule ReduceRule(const hlo::Instruction&);
// slice.cc
OpRule SliceRule(const hlo::Instruction&);
OpRule PadRule(const hlo::Instruction&);
OpRule ConcatenateRule(const hlo::Instruction&);
OpRule ReverseRule(const hlo::Instruction&);
OpRule DynamicSliceRule(const hlo::Instruction&);
OpRule DynamicUpdateSliceRule(const hlo::Instruction&);
OpRule DimensionSizeRule(const hlo::Instruction&);
// gather.cc
OpRule GatherRule(const hlo::Instruction&);
OpRule ScatterRule(const hlo::Instruction&);
// sort.cc
OpRule SortRule(const hlo::Instruction&);
OpRule TopKRule(const hlo::Instruction&);
// generate.cc
OpRule RngRule(const hlo::Instruction&);
OpRule RngBitGeneratorRule(const hlo::Instruction&);
OpRule IotaRule(const hlo::Instruction&);
// control.cc
OpRule ControlRule(const hlo::Instruction&);
// collective.cc
OpRule CollectiveRule(const hlo::Instruction&);
// linalg.cc
OpRule CholeskyRule(const hlo::Instruction&);
OpRule TriangularSolveRule(const hlo::Instruction&);
// Operands: a triangle, right sides. Each right side is solved alone: columns when the triangle is on the left.
OpRule RightSidesRule(const hlo::Instruction&, bool left_side);
OpRule FftRule(const hlo::Instruction&);
// custom_call.cc
OpRule CustomCallRule(const hlo::Instruction&);

}  // namespace gangway::rules
