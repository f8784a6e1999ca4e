// custom-call: the annotations of partitioned programs, and what the caller hooked in.
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/eval/op_table.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

// On one device a shard is the whole array; with more, the two differ and the partitioner must have replaced the call.
bool IsAnnotation(absl::string_view target) {
  return target == "Sharding" || target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape";
}

absl::StatusOr<Value> OnOneDevice(const LockstepCall& call, size_t d, const CustomCallFunction* hook) {
  std::vector<Value> operands;
  for (const PerDevice& operand : call.operands) operands.push_back(operand[d]);
  if (hook != nullptr) return (*hook)(call.instruction, operands);
  const std::string& target = call.instruction.attr<hlo::CustomCallAttr>().target;
  if (!IsAnnotation(target) || operands.empty()) {
    return absl::UnimplementedError(absl::StrCat("custom call to '", target, "'"));
  }
  if (!operands.front().HasShape(call.instruction.shape())) {
    return absl::UnimplementedError(absl::StrCat("'", target, "' from ", operands.front().shape().ToString(), " to ",
                                                 call.instruction.shape().ToString(),
                                                 ": the program is for more devices and not partitioned"));
  }
  return operands.front();
}

absl::StatusOr<PerDevice> CustomCall(const LockstepCall& call) {
  const std::string& target = call.instruction.attr<hlo::CustomCallAttr>().target;
  const EvaluateOptions& options = call.interpreter.options();
  if (auto it = options.lockstep_custom_calls.find(target); it != options.lockstep_custom_calls.end()) {
    return it->second(call.instruction, call.operands, call.devices);
  }
  auto hook = options.custom_calls.find(target);
  PerDevice results;
  for (size_t d = 0; d < call.devices.size(); ++d) {
    GW_ASSIGN_OR_RETURN(Value value,
                        OnOneDevice(call, d, hook == options.custom_calls.end() ? nullptr : &hook->second));
    results.push_back(std::move(value));
  }
  return results;
}

}  // namespace

void AddCustomCall(OpTable* table) { table->SetLockstep(Opcode::kCustomCall, CustomCall); }

}  // namespace gangway::eval
