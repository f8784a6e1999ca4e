// Operations that make a value from nothing: constants, iota, broadcasts.
#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"
#include "gangway/partition/rematerialize.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

// Made directly under the sharding that is wanted; no other version ever has to move.
absl::Status LocalizeRemade(const Instruction& instruction, Context& context) {
  Sharding wanted = context.Wanted(instruction);
  wanted.unreduced.clear();
  const LocalValue value{nullptr, wanted, WithoutLayout(instruction.shape()), &instruction};
  GW_ASSIGN_OR_RETURN(Instruction * local, Remake(&context, value, wanted));
  context.Set(instruction, local, wanted);
  return absl::OkStatus();
}

}  // namespace

absl::Status LocalizeConstant(const Instruction& instruction, Context& context) {
  const Literal& literal = *instruction.attr<hlo::ConstantAttr>().literal;
  if (instruction.shape().rank() > 0 && literal.IsSplat()) return LocalizeRemade(instruction, context);
  const OpPlan plan = ReplicatedPlan(instruction, context);
  EmitLocal(instruction, plan, {}, context);
  return absl::OkStatus();
}

absl::Status LocalizeIota(const Instruction& instruction, Context& context) {
  return LocalizeRemade(instruction, context);
}

absl::Status LocalizeBroadcast(const Instruction& instruction, Context& context) {
  if (instruction.operand(0)->shape().rank() == 0 &&
      context.Value(*instruction.operand(0)).sharding.unreduced.empty()) {
    return LocalizeRemade(instruction, context);
  }
  return LocalizeByRule(instruction, context);
}

}  // namespace gangway::partition
