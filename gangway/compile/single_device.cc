#include "gangway/compile/single_device.h"

#include <string>
#include <vector>

#include "gangway/hlo/builder.h"

namespace gangway::compile {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsShardingCall(const Instruction& instruction) {
  const auto* call = instruction.attr_if<hlo::CustomCallAttr>();
  if (call == nullptr || instruction.operand_count() != 1) return false;
  return call->target == "Sharding" || call->target == "SPMDFullToShardShape" ||
         call->target == "SPMDShardToFullShape" || call->target == "xla.sdy.FuncResultSharding";
}

}  // namespace

void StripShardings(hlo::Module* module) {
  for (const auto& computation : module->computations()) {
    std::vector<Instruction*> calls, ids;
    for (const auto& instruction : computation->instructions()) {
      instruction->set_shardings(std::nullopt);
      if (IsShardingCall(*instruction)) calls.push_back(instruction.get());
      if (instruction->opcode() == Opcode::kPartitionId) ids.push_back(instruction.get());
    }
    for (Instruction* call : calls) {
      if (!Shape::Compatible(call->shape(), call->operand(0)->shape())) continue;
      call->ReplaceAllUsesWith(call->operand(0));
    }
    if (!ids.empty()) {
      hlo::Builder builder(computation.get());
      Instruction* zero = builder.Constant(Literal(Shape::Scalar(DType::kU32)));
      for (Instruction* id : ids) id->ReplaceAllUsesWith(zero);
      computation->SortTopologically();
    }
  }
}

}  // namespace gangway::compile
