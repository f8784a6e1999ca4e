#include <algorithm>

#include "gangway/eval/evaluate.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kMaxBytes = 4096;  // of a folded result

// What makes much out of little stays an operation unless it is one element.
bool Expands(Opcode opcode) {
  return opcode == Opcode::kBroadcast || opcode == Opcode::kIota || opcode == Opcode::kPad;
}

bool IsFoldable(const Instruction& instruction) {
  if (instruction.HasSideEffect() || instruction.has_sharding() || !instruction.shape().IsArray()) return false;
  switch (instruction.opcode()) {
    case Opcode::kConstant:
    case Opcode::kParameter:
    case Opcode::kCopy:
    case Opcode::kOptBarrier:
    case Opcode::kDomain:
    case Opcode::kRng:
      return false;
    default:
      break;
  }
  if (!instruction.called().empty() && instruction.opcode() != Opcode::kReduce) return false;
  int64_t bytes = instruction.shape().ByteSize(), operand_bytes = 0;
  for (const Instruction* operand : instruction.operands()) {
    if (operand->opcode() != Opcode::kConstant || !operand->shape().IsArray()) return false;
    operand_bytes += operand->shape().ByteSize();
  }
  if (Expands(instruction.opcode()) && instruction.shape().ElementCount() != 1) return false;
  return bytes <= kMaxBytes && operand_bytes <= kMaxBytes;
}

bool RunOn(Computation& computation) {
  std::vector<Instruction*> instructions;
  for (const auto& instruction : computation.instructions()) instructions.push_back(instruction.get());
  bool changed = false;
  for (Instruction* instruction : instructions) {
    if (!IsFoldable(*instruction)) continue;
    std::vector<eval::Value> operands;
    for (const Instruction* operand : instruction->operands()) {
      operands.emplace_back(operand->attr<hlo::ConstantAttr>().literal);
    }
    absl::StatusOr<eval::Value> value = eval::EvaluateInstruction(*instruction, operands);
    if (!value.ok()) continue;  // not a function of its operands, or not supported
    Instruction* constant = computation.Add(Opcode::kConstant, WithoutLayout(instruction->shape()), {},
                                            hlo::ConstantAttr{value->shared_array()});
    constant->set_metadata(instruction->metadata());
    instruction->ReplaceAllUsesWith(constant);
    changed = true;
  }
  if (changed) {
    computation.RemoveDead();
    computation.SortTopologically();
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> RunConstantFold(hlo::Module& module) {
  bool changed = false;
  for (const auto& computation : module.computations()) changed |= RunOn(*computation);
  return changed;
}

}  // namespace gangway::passes
