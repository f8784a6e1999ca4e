#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "gangway/hlo/builder.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Larger ones gain nothing from sharing a message, would wait for each other and be in memory together.
constexpr int64_t kMaxCombinedBytes = int64_t{2} << 20;

bool IsCandidate(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kAllReduce && instruction.opcode() != Opcode::kAllGather) return false;
  return instruction.shape().IsArray() && !instruction.has_sharding() && instruction.control_predecessors().empty() &&
         instruction.shape().ByteSize() < kMaxCombinedBytes;
}

// Equal for those that may become one instruction: kind, groups, element type and reduction, dimension.
std::string KeyOf(const Instruction& instruction) {
  const auto& attr = instruction.attr<hlo::CollectiveAttr>();
  std::string key = absl::StrCat(hlo::OpcodeName(instruction.opcode()), " ", attr.dimension.value_or(-1), " ",
                                 attr.channel_id.has_value(), attr.use_global_device_ids, " ",
                                 DTypeName(instruction.shape().dtype()));
  if (!instruction.called().empty()) {
    const Instruction* root = instruction.called().front()->root();
    absl::StrAppend(&key, " ", hlo::OpcodeName(root->opcode()));
    // Only plain reductions of two parameters are told apart by their root.
    if (root->operand_count() != 2 || instruction.called().front()->size() != 3) absl::StrAppend(&key, root->name());
  }
  absl::StrAppend(&key, " ", attr.groups.ToString());
  return key;
}

// Instructions of one key at one level do not depend on each other: the level counts those of the key on the longest
// way to an instruction.
std::map<int64_t, std::vector<Instruction*>> ByLevel(const Computation& computation,
                                                     const absl::flat_hash_set<const Instruction*>& of_key) {
  absl::flat_hash_map<const Instruction*, int64_t> after;  // level of what uses it
  std::map<int64_t, std::vector<Instruction*>> levels;
  for (const auto& instruction : computation.instructions()) {
    int64_t level = 0;
    for (const Instruction* operand : instruction->operands()) level = std::max(level, after.at(operand));
    for (const Instruction* before : instruction->control_predecessors()) level = std::max(level, after.at(before));
    if (of_key.contains(instruction.get())) levels[level++].push_back(instruction.get());
    after[instruction.get()] = level;
  }
  return levels;
}

void Combine(Computation& computation, const std::vector<Instruction*>& parts) {
  std::vector<Instruction*> operands;
  std::vector<Shape> shapes;
  for (const Instruction* part : parts) {
    operands.push_back(part->operand(0));
    shapes.push_back(WithoutLayout(part->shape()));
  }
  Instruction* combined = computation.AddClone(*parts.front(), Shape::Tuple(shapes), std::move(operands));
  hlo::Builder builder(&computation);
  for (size_t i = 0; i < parts.size(); ++i) {
    builder.set_metadata(parts[i]->metadata());
    parts[i]->ReplaceAllUsesWith(builder.GetTupleElement(combined, static_cast<int64_t>(i)));
  }
}

bool CombineLevel(Computation& computation, const std::vector<Instruction*>& candidates) {
  bool changed = false;
  std::vector<Instruction*> batch;
  int64_t bytes = 0;
  auto flush = [&] {
    if (batch.size() > 1) {
      Combine(computation, batch);
      changed = true;
    }
    batch.clear();
    bytes = 0;
  };
  for (Instruction* candidate : candidates) {
    if (bytes + candidate->shape().ByteSize() > kMaxCombinedBytes) flush();
    batch.push_back(candidate);
    bytes += candidate->shape().ByteSize();
  }
  flush();
  return changed;
}

bool RunOn(Computation& computation) {
  std::vector<absl::flat_hash_set<const Instruction*>> by_key;  // in program order
  absl::flat_hash_map<std::string, size_t> place;
  for (const auto& instruction : computation.instructions()) {
    if (!IsCandidate(*instruction)) continue;
    const auto [it, added] = place.emplace(KeyOf(*instruction), by_key.size());
    if (added) by_key.emplace_back();
    by_key[it->second].insert(instruction.get());
  }
  bool changed = false;
  for (const absl::flat_hash_set<const Instruction*>& of_key : by_key) {
    if (of_key.size() < 2) continue;
    bool changed_by_key = false;
    for (const auto& [level, candidates] : ByLevel(computation, of_key)) {
      changed_by_key |= CombineLevel(computation, candidates);
    }
    if (!changed_by_key) continue;
    computation.RemoveDead();
    computation.SortTopologically();
    changed = true;
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> RunCombineCollectives(hlo::Module& module) {
  bool changed = false;
  for (const auto& computation : module.computations()) changed |= RunOn(*computation);
  return changed;
}

}  // namespace gangway::passes
