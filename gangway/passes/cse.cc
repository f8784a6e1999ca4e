#include <algorithm>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "gangway/hlo/halves.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kMaxComparedBytes = 1 << 16;  // larger constants are compared by identity only

bool SameComputation(const Computation& a, const Computation& b);

bool SameCalled(const Instruction& a, const Instruction& b) {
  if (a.called().size() != b.called().size()) return false;
  for (size_t i = 0; i < a.called().size(); ++i) {
    if (a.called()[i] != b.called()[i] && !SameComputation(*a.called()[i], *b.called()[i])) return false;
  }
  return true;
}

bool SameAttributes(const Instruction& a, const Instruction& b) {
  if (const auto* constant = a.attr_if<hlo::ConstantAttr>()) {
    const auto* other = b.attr_if<hlo::ConstantAttr>();
    if (other == nullptr) return false;
    if (constant->literal == other->literal) return true;
    return a.shape().ByteSize() <= kMaxComparedBytes && *constant->literal == *other->literal;
  }
  if (hlo::IsCollective(a.opcode())) {  // the channel only names the instruction
    hlo::CollectiveAttr x = a.attr<hlo::CollectiveAttr>(), y = b.attr<hlo::CollectiveAttr>();
    if (x.channel_id.has_value() != y.channel_id.has_value()) return false;
    x.channel_id = y.channel_id;
    return x == y;
  }
  return a.attributes() == b.attributes();
}

// Everything but operands.
bool SameOperation(const Instruction& a, const Instruction& b) {
  return a.opcode() == b.opcode() && Shape::Compatible(a.shape(), b.shape()) && SameAttributes(a, b) &&
         a.shardings() == b.shardings() && a.backend_config() == b.backend_config() &&
         a.frontend_attributes() == b.frontend_attributes() && SameCalled(a, b);
}

// Structurally equal, instruction by instruction.
bool SameComputation(const Computation& a, const Computation& b) {
  if (a.size() != b.size()) return false;
  absl::flat_hash_map<const Instruction*, const Instruction*> partner;
  for (int64_t i = 0; i < a.size(); ++i) {
    const Instruction &x = *a.instructions()[i], &y = *b.instructions()[i];
    if (x.operand_count() != y.operand_count() || !SameOperation(x, y) || x.IsRoot() != y.IsRoot()) return false;
    for (int64_t k = 0; k < x.operand_count(); ++k) {
      if (partner.at(x.operand(k)) != y.operand(k)) return false;
    }
    partner[&x] = &y;
  }
  return true;
}

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
    if (instruction.shape().ByteSize() <= kMaxComparedBytes) bytes = absl::HashOf(constant->literal->bytes());
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
      return other->operands() == instruction->operands() && SameOperation(*other, *instruction);
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
