// How one operation is split: axes for each factor of its rule, chosen by modelled cost.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/hlo/instruction.h"
#include "gangway/mesh/sharding.h"
#include "gangway/partition/context.h"
#include "gangway/rules/rule.h"

namespace gangway::partition {

// A value: what the operands are brought to, how the results then lie.
struct OpPlan {
  std::vector<AxisList> factors;  // per factor of the rule
  Shardings operands;             // per operand that is an array; replicated rank 0 for others
  Shardings results;              // per leaf; unreduced over the axes of split reduction factors
  AxisList reduced;               // those axes
  Reduction reduction = Reduction::kSum;
  double cost = 0;  // of everything
  double work = 0;  // the part of it that is work, not movement

  std::string ToString(const Mesh& mesh) const;
};

// What the choice may not or need not do. Permutation and need-replication factors are never split.
struct OpPlanOptions {
  bool may_reduce = true;       // split reduction factors, giving partial results
  std::vector<int> partial_ok;  // operands whose partial sums may pass through (the operation is linear in each alone
                                // or, with partial_together, in all of them at once)
  bool partial_together = false;
  AxisList without;  // axes no factor may take
};

// Options by the operation's kind (linear ones pass partial sums on).
OpPlanOptions OptionsFor(const hlo::Instruction& instruction);

// The cheapest plan: reshards of operands and results, repeated work. Pure but for the context's plan cache.
absl::StatusOr<OpPlan> PlanOp(const hlo::Instruction& instruction, const rules::OpRule& rule,
                              const OpPlanOptions& options, Context& context);

// What it costs to have a leaf of the result, lying as `sharding`, where completion wants it. Partial sums that are
// added to others over the same axes share the cost of resolving them.
double ResultCost(const hlo::Instruction& instruction, int64_t leaf, const Sharding& sharding, Context& context);

// --- between shardings and factors -----------------------------------------------------------------------------------
// Axes of each factor in a sharding of a value with these dimensions; as far as factor boundaries allow.
std::vector<AxisList> ToFactors(const rules::OpRule& rule, const rules::ValueFactors& dims, const Sharding& sharding);
// The sharding that splits the value's factors by `axes`; false when a dimension of several factors cannot be (minor
// factor split while a more major one is not wholly, or sizes that do not divide).
bool FromFactors(const rules::OpRule& rule, const rules::ValueFactors& dims, const std::vector<AxisList>& axes,
                 const MeshRef& mesh, Sharding* sharding);

}  // namespace gangway::partition
