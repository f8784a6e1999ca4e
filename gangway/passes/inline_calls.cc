#include "absl/container/flat_hash_map.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Loops and branches of two copies must not share bodies: shardings and rewrites are per use.
void CopyCalled(Instruction* copy) {
  absl::flat_hash_map<const Computation*, Computation*> done;
  std::vector<Computation*> called;
  for (const Computation* computation : copy->called()) {
    called.push_back(copy->parent()->module()->CloneComputation(*computation, &done));
  }
  copy->set_called(std::move(called));
}

// The callee's instructions, copied behind those of the caller. The result takes over what the call says about itself.
void Inline(Computation& caller, Instruction* call) {
  const Computation& callee = *call->called().front();
  absl::flat_hash_map<const Instruction*, Instruction*> copies;
  for (const auto& instruction : callee.instructions()) {
    if (const auto* parameter = instruction->attr_if<hlo::ParameterAttr>()) {
      copies[instruction.get()] = call->operand(parameter->number);
      continue;
    }
    std::vector<Instruction*> operands;
    for (const Instruction* operand : instruction->operands()) operands.push_back(copies.at(operand));
    Instruction* copy = caller.AddClone(*instruction, instruction->shape(), std::move(operands));
    if (instruction->opcode() == Opcode::kWhile || instruction->opcode() == Opcode::kConditional) CopyCalled(copy);
    for (const Instruction* before : instruction->control_predecessors()) {
      if (auto it = copies.find(before); it != copies.end()) copy->AddControlPredecessor(it->second);
    }
    copies[instruction.get()] = copy;
  }
  Instruction* result = copies.at(callee.root());
  bool is_copy = callee.root()->opcode() != Opcode::kParameter;
  if (call->has_sharding() && is_copy && !result->has_sharding()) result->set_shardings(call->shardings());
  call->ReplaceAllUsesWith(result);
}

// What the program wants to stay a function (JAX's xla_metadata_call with inlineable="false").
bool IsKept(const Instruction& call) {
  const auto inlineable = call.frontend_attributes().find("inlineable");
  return inlineable != call.frontend_attributes().end() && inlineable->second == "false";
}

bool RunOn(Computation& computation) {
  std::vector<Instruction*> calls;
  for (const auto& instruction : computation.instructions()) {
    if (instruction->opcode() == Opcode::kCall && !IsKept(*instruction)) calls.push_back(instruction.get());
  }
  for (Instruction* call : calls) {
    Inline(computation, call);
    computation.Remove(call);
  }
  if (!calls.empty()) computation.SortTopologically();
  return !calls.empty();
}

}  // namespace

absl::StatusOr<bool> RunInlineCalls(hlo::Module& module) {
  bool changed = false;
  for (Computation* computation : module.PostOrder()) changed |= RunOn(*computation);  // callees first
  if (changed) module.RemoveUnreachable();
  return changed;
}

}  // namespace gangway::passes
