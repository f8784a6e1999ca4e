// The path most operations take: plan by the rule, reshard the operands, run on local shapes.
#pragma once

#include "absl/status/status.h"
#include "gangway/partition/context.h"
#include "gangway/partition/op_plan.h"
#include "gangway/rules/rule.h"

namespace gangway::partition {

// Operands brought to the plan; those that are accumulated once hold the identity on all but one shard where the plan
// reduces, and the padding of split reduction dimensions is the identity.
absl::StatusOr<std::vector<hlo::Instruction*>> PreparedOperands(const hlo::Instruction& instruction,
                                                                const rules::OpRule& rule, const OpPlan& plan,
                                                                Context& context);

// The instruction on local operands, attributes that name extents adapted.
hlo::Instruction* LocalClone(const hlo::Instruction& instruction, const OpPlan& plan,
                             std::vector<hlo::Instruction*> operands, Context& context);
// The same, and its values set.
void EmitLocal(const hlo::Instruction& instruction, const OpPlan& plan, std::vector<hlo::Instruction*> operands,
               Context& context);

// The value is known to be what combining leaves unchanged.
bool IsIdentity(const hlo::Instruction& scalar, Reduction reduction);

// A rule's plan where everything is replicated.
OpPlan ReplicatedPlan(const hlo::Instruction& instruction, Context& context);

// Sets the values of a result emitted under the plan.
void SetResults(const hlo::Instruction& instruction, hlo::Instruction* result, const Shardings& shardings,
                Context& context);

// Rule, options, plan, operands, emit.
absl::Status LocalizeWith(const hlo::Instruction& instruction, const rules::OpRule& rule, const OpPlanOptions& options,
                          Context& context);

}  // namespace gangway::partition
