// Custom calls: sharding annotations and the borders of manual regions; any other runs whole on every device unless it
// has a rule.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

// The annotation holds: what follows sees the value exactly so.
absl::Status LocalizeSharding(const Instruction& instruction, Context& context) {
  const LocalValue value = context.Value(*instruction.operand(0));
  Sharding wanted = context.Wanted(instruction);
  if (wanted.manual.empty()) wanted.manual = value.sharding.manual;
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, wanted));
  context.Set(instruction, {LocalValue{local, wanted, value.global, value.origin}});
  return absl::OkStatus();
}

// Into a manual region: the operand split over the manual axes already has the local shape. Which dimension each manual
// axis splits shows in the operand's own wanted sharding.
absl::Status LocalizeFullToShard(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  const Sharding result = context.Wanted(instruction);
  Sharding outside = context.Wanted(*instruction.operand(0));
  outside.unreduced.clear();
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, outside));
  context.Set(instruction, {LocalValue{local, result, WithoutLayout(instruction.shape()), nullptr}});
  return absl::OkStatus();
}

absl::Status LocalizeShardToFull(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  const Sharding result = context.Wanted(instruction);
  Sharding inside = value.sharding;
  inside.unreduced.clear();
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, inside));
  context.Set(instruction, {LocalValue{local, result, WithoutLayout(instruction.shape()), nullptr}});
  return absl::OkStatus();
}

}  // namespace

absl::Status LocalizeCustomCall(const Instruction& instruction, Context& context) {
  const std::string& target = instruction.attr<hlo::CustomCallAttr>().target;
  if (target == "Sharding") return LocalizeSharding(instruction, context);
  if (target == "SPMDFullToShardShape") return LocalizeFullToShard(instruction, context);
  if (target == "SPMDShardToFullShape") return LocalizeShardToFull(instruction, context);
  return LocalizeByRule(instruction, context);
}

}  // namespace gangway::partition
