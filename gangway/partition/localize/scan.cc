#include "gangway/partition/localize/scan.h"

#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {

using hlo::Instruction;

Sharding ScanSharding(const Instruction& instruction, Context& context) {
  const Sharding& held = context.Value(*instruction.operand(0)).sharding;
  Sharding sharding = context.Wanted(instruction);
  if (sharding.IsReplicated() || !SameMesh(sharding.mesh, context.mesh())) sharding = held;
  sharding.unreduced.clear();
  sharding.manual = held.manual;
  return sharding;
}

absl::Status LocalizeAsScan(const Instruction& instruction, const ScanSpec& spec, const Sharding& sharding,
                            Context& context) {
  const std::vector<Shape> globals = Leaves(instruction.shape());
  const int64_t arrays = static_cast<int64_t>(globals.size());
  std::vector<Instruction*> operands;
  for (int64_t i = 0; i < arrays; ++i) {
    const LocalValue& value = context.Value(*instruction.operand(i));
    GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, sharding));
    if (arrays < instruction.operand_count()) {
      GW_ASSIGN_OR_RETURN(Instruction * neutral, context.Replicate(context.Value(*instruction.operand(arrays + i))));
      local = context.MaskPadding(local, sharding, value.global, {spec.dim}, neutral);
    }
    operands.push_back(local);
  }
  operands = EmitScan(spec, std::move(operands), sharding, context);
  LocalValues values;
  for (int64_t i = 0; i < arrays; ++i) values.push_back({operands[i], sharding, WithoutLayout(globals[i]), nullptr});
  context.Set(instruction, std::move(values));
  return absl::OkStatus();
}

absl::Status LocalizeScanCall(const Instruction& instruction, int64_t dim, Context& context) {
  const ScanSpec spec{instruction.called()[0], dim, false};
  if (!IsArrayCombiner(*spec.combiner)) return LocalizeReplicated(instruction, context);
  Sharding sharding = ScanSharding(instruction, context);
  if (!SameMesh(sharding.mesh, context.mesh())) {
    sharding = Context::WithManual(context.Replicated(instruction.operand(0)->shape().rank()), sharding.manual);
  }
  return LocalizeAsScan(instruction, spec, sharding, context);
}

}  // namespace gangway::partition
