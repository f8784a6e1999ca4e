// Operations that keep every element and rename its index.
#include <algorithm>
#include <numeric>

#include "gangway/rules/family.h"

namespace gangway::rules {
namespace {

// Walks both sides from the major end, taking the largest common factor of what is left of the two current dimensions.
// [6,4]->[8,3] is (i*j k)->(i*l m): halves agree, the rest (12 elements as 3x4 and as 4x3) does not and is replicated
// until both sides are at the same place again.
class ReshapeWalk {
 public:
  explicit ReshapeWalk(RuleBuilder* rule) : rule_(rule), in_(rule->operand(0).dims()), out_(rule->result().dims()) {}

  void Run() {
    while (Settle()) {
      const int64_t common = std::gcd(in_left_, out_left_);
      if (common == 1) {
        AddUnmatched();
        continue;
      }
      const int factor = rule_->AddFactor(common, FactorKind::kPassThrough);
      rule_->Operand(0, i_, factor);
      rule_->Result(0, j_, factor);
      in_left_ /= common;
      out_left_ /= common;
    }
  }

 private:
  // Moves to the next dimension on a side whose current one is used up. False at the end.
  bool Settle() {
    while (in_left_ == 1 && i_ + 1 < static_cast<int64_t>(in_.size())) in_left_ = in_[++i_];
    while (out_left_ == 1 && j_ + 1 < static_cast<int64_t>(out_.size())) out_left_ = out_[++j_];
    return in_left_ != 1 && out_left_ != 1;
  }

  // What is left of the two dimensions shares no factor: both sides go on, replicated, until they have passed the same
  // number of elements.
  void AddUnmatched() {
    int64_t in_passed = in_left_, out_passed = out_left_;
    AddOperandRest();
    AddResultRest();
    while (in_passed != out_passed) {
      if (in_passed < out_passed) {
        in_left_ = in_[++i_];
        in_passed *= in_left_;
        AddOperandRest();
      } else {
        out_left_ = out_[++j_];
        out_passed *= out_left_;
        AddResultRest();
      }
    }
  }

  void AddOperandRest() {
    if (in_left_ > 1) rule_->Operand(0, i_, rule_->AddFactor(in_left_, FactorKind::kNeedReplication));
    in_left_ = 1;
  }
  void AddResultRest() {
    if (out_left_ > 1) rule_->Result(0, j_, rule_->AddFactor(out_left_, FactorKind::kNeedReplication));
    out_left_ = 1;
  }

  RuleBuilder* rule_;
  const DimVector in_, out_;
  int64_t i_ = -1, j_ = -1;
  int64_t in_left_ = 1, out_left_ = 1;
};

}  // namespace

OpRule ReshapeRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  if (rule.result().ElementCount() > 0) ReshapeWalk(&rule).Run();
  return rule.Take();
}

// Of the physical elements: the same index only where the dimensions are the same.
OpRule BitcastRule(const hlo::Instruction& instruction) {
  const Shape &from = instruction.operand(0)->shape(), &to = instruction.shape();
  if (from.dims() != to.dims() || BitWidth(from.dtype()) != BitWidth(to.dtype()) || from.layout() != to.layout()) {
    return Unsupported("a bitcast that depends on the layout");
  }
  return ElementwiseRule(instruction);
}

OpRule TransposeRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const DimVector& permutation = instruction.attr<hlo::DimensionsAttr>().dims;
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    const int factor = rule.AddFactor(rule.result().dim(dim), FactorKind::kPassThrough);
    rule.Operand(0, permutation[dim], factor);
    rule.Result(0, dim, factor);
  }
  return rule.Take();
}

OpRule BroadcastRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const DimVector& dims = instruction.attr<hlo::DimensionsAttr>().dims;
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    const int factor = rule.AddFactor(rule.result().dim(dim), FactorKind::kPassThrough);
    rule.Result(0, dim, factor);
    auto from = std::find(dims.begin(), dims.end(), dim);
    if (from != dims.end()) rule.Operand(0, from - dims.begin(), factor);
  }
  return rule.Take();
}

}  // namespace gangway::rules
