// custom-call: sharding annotations, the borders of manual computations, and what the caller hooked in.
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/eval/lapack_call.h"
#include "gangway/eval/manual_region.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/scan_call.h"
#include "gangway/hlo/scan_call.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

// Markers of shardings, which say nothing about values.
bool IsAnnotation(absl::string_view target) {
  return target == "Sharding" || target == "xla.sdy.ShardingGroup" || target == "xla.sdy.PropagationBarrier";
}

absl::StatusOr<Value> Annotation(const LockstepCall& call, size_t d) {
  if (call.operands.empty() || !call.operands.front()[d].HasShape(call.instruction.shape())) return Value::Tuple({});
  return call.operands.front()[d];
}

absl::StatusOr<PerDevice> OneByOne(const LockstepCall& call, const CustomCallFunction& hook) {
  PerDevice results;
  for (size_t d = 0; d < call.devices.size(); ++d) {
    std::vector<Value> operands;
    for (const PerDevice& operand : call.operands) operands.push_back(operand[d]);
    GW_ASSIGN_OR_RETURN(Value value, hook(call.instruction, operands));
    results.push_back(std::move(value));
  }
  return results;
}

absl::StatusOr<PerDevice> CustomCall(const LockstepCall& call) {
  const std::string& target = call.instruction.attr<hlo::CustomCallAttr>().target;
  const EvaluateOptions& options = call.interpreter.options();
  if (auto it = options.lockstep_custom_calls.find(target); it != options.lockstep_custom_calls.end()) {
    return it->second(call.instruction, call.operands, call.devices);
  }
  if (auto it = options.custom_calls.find(target); it != options.custom_calls.end()) return OneByOne(call, it->second);
  if (target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape") {
    if (call.operands.size() != 1 || !call.instruction.shape().IsArray() ||
        !call.instruction.operand(0)->shape().IsArray()) {
      return absl::InvalidArgumentError(absl::StrCat("'", target, "' takes one array and gives one"));
    }
    // Both shapes are the same where nothing is split.
    bool same_shape = call.operands[0].front().HasShape(call.instruction.shape());
    if (same_shape && call.interpreter.num_devices() == 1) return call.operands[0];
    return target == "SPMDFullToShardShape" ? EnterManualRegion(call) : LeaveManualRegion(call);
  }
  if (const lapack::Routine* routine = lapack::FindRoutine(target); routine != nullptr) {
    return OneByOne(call, [routine](const hlo::Instruction& instruction, absl::Span<const Value> operands) {
      return EvaluateLapackCall(*routine, instruction, operands);
    });
  }
  if (const auto dim = hlo::ScanDimension(call.instruction)) {
    return OneByOne(call, [&](const hlo::Instruction& instruction, absl::Span<const Value> operands) {
      return EvaluateScan(call.interpreter, instruction, *dim, operands);
    });
  }
  if (!IsAnnotation(target)) return absl::UnimplementedError(absl::StrCat("custom call to '", target, "'"));
  PerDevice results;
  for (size_t d = 0; d < call.devices.size(); ++d) {
    GW_ASSIGN_OR_RETURN(Value value, Annotation(call, d));
    results.push_back(std::move(value));
  }
  return results;
}

}  // namespace

void AddCustomCall(OpTable* table) { table->SetLockstep(Opcode::kCustomCall, CustomCall); }

}  // namespace gangway::eval
