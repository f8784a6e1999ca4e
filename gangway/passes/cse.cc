#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "gangway/hlo/halves.h"
#include "gangway/hlo/same_operation.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool MayMerge(const Instruction& instruction) {
  if (instruction.HasSideEffect() || !instruction.control_predecessors().empty()) return false;
  if (hlo::IsStart(instruction.opcode())) return false;
  switch (instruction.opcode()) {
    case Opcode::kParameter:
    case Opcode::kOptBarrier:
    case Opcode::kAfterAll:
    case Opcode::kCopyStart:
      return false;
    default:
      return true;
  }
}

size_t HashOf(const Instruction& instruction) {
  std::vector<const Instruction*> operands(instruction.operands().begin(), instruction.operands().end());
  size_t bytes = 0;
  if (const auto* constant = instruction.attr_if<hlo::ConstantAttr>()) {
    if (instruction.shape().ByteSize() <= hlo::kMaxComparedBytes) bytes = absl::HashOf(constant->literal->bytes());
  }
  return absl::HashOf(static_cast<int>(instruction.opcode()), operands, instruction.shape(), bytes);
}

bool RunOn(Computation& computation) {
  absl::flat_hash_map<size_t, std::vector<Instruction*>> seen;
  bool changed = false;
  for (const auto& owned : computation.instructions()) {
    Instruction* instruction = owned.get();
    if (!MayMerge(*instruction)) continue;
    std::vector<Instruction*>& candidates = seen[HashOf(*instruction)];
    auto same = std::find_if(candidates.begin(), candidates.end(), [&](const Instruction* other) {
      return other->operands() == instruction->operands() && other->shardings() == instruction->shardings() &&
             hlo::SameOperation(*other, *instruction);
    });
    if (same == candidates.end()) {
      candidates.push_back(instruction);
    } else if (!instruction->users().empty() || instruction->IsRoot()) {
      instruction->ReplaceAllUsesWith(*same);
      changed = true;
    }
  }
  if (changed) computation.RemoveDead();
  return changed;
}

}  // namespace

absl::StatusOr<bool> RunCse(hlo::Module& module) {
  bool changed = false;
  for (const auto& computation : module.computations()) changed |= RunOn(*computation);
  return changed;
}

}  // namespace gangway::passes
