// Collectives the user wrote (shard_map): they act along manual axes, where shapes are local already.
#include "gangway/base/status.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {

using hlo::Instruction;

absl::Status LocalizeCollective(const Instruction& instruction, Context& context) {
  // Groups name devices of the whole mesh and hold one position of every free axis, so they need no change.
  GW_RETURN_IF_ERROR(LocalizeByRule(instruction, context));
  for (const LocalValue& value : context.Values(instruction)) {
    Instruction* made = value.local;
    while (made->opcode() == hlo::Opcode::kGetTupleElement) made = made->operand(0);
    if (auto* attr = std::get_if<hlo::CollectiveAttr>(&made->mutable_attributes())) {
      attr->channel_id = context.module().next_channel++;
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status LocalizePartitionId(const Instruction& instruction, Context& context) {
  const OpPlan plan = ReplicatedPlan(instruction, context);
  EmitLocal(instruction, plan, {}, context);
  return absl::OkStatus();
}

}  // namespace gangway::partition
