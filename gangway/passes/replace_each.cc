#include "gangway/passes/replace_each.h"

#include <vector>

namespace gangway::passes {
namespace {

bool ReplaceIn(hlo::Computation* computation, hlo::Opcode opcode,
               absl::FunctionRef<bool(hlo::Instruction*, hlo::Builder&)> replace) {
  std::vector<hlo::Instruction*> found;
  for (const auto& instruction : computation->instructions()) {
    if (instruction->opcode() == opcode) found.push_back(instruction.get());
  }
  hlo::Builder builder(computation);
  bool changed = false;
  for (hlo::Instruction* instruction : found) changed |= replace(instruction, builder);
  if (!changed) return false;
  computation->RemoveDead();
  computation->SortTopologically();
  return true;
}

}  // namespace

bool ReplaceEach(hlo::Module& module, hlo::Opcode opcode,
                 absl::FunctionRef<bool(hlo::Instruction*, hlo::Builder&)> replace) {
  std::vector<hlo::Computation*> computations;  // a replacement may add some
  for (const auto& computation : module.computations()) computations.push_back(computation.get());
  bool changed = false;
  for (hlo::Computation* computation : computations) changed |= ReplaceIn(computation, opcode, replace);
  return changed;
}

}  // namespace gangway::passes
