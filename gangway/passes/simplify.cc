#include <array>
#include <vector>

#include "gangway/passes/passes.h"
#include "gangway/passes/simplify_rules.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;

constexpr int kMaxRounds = 16;  // a round that changes nothing ends the pass; chains of views take one each

using RulesByOpcode = std::array<std::vector<Rule>, hlo::kOpcodeCount>;

RulesByOpcode Collect() {
  RulesByOpcode rules;
  for (absl::Span<const OpRule> family : {ViewRules(), SliceRules(), ArithmeticRules(), CollectiveRules()}) {
    for (const OpRule& rule : family) rules[static_cast<int>(rule.opcode)].push_back(rule.rule);
  }
  return rules;
}

bool ApplyTo(Instruction* instruction, const RulesByOpcode& rules, hlo::Builder& builder) {
  for (Rule rule : rules[static_cast<int>(instruction->opcode())]) {
    builder.set_metadata(instruction->metadata());
    std::optional<Instruction*> simpler = rule(builder, instruction);
    if (!simpler.has_value()) continue;
    instruction->ReplaceAllUsesWith(*simpler);
    return true;
  }
  return false;
}

bool Round(Computation& computation, const RulesByOpcode& rules) {
  std::vector<Instruction*> instructions;
  for (const auto& instruction : computation.instructions()) instructions.push_back(instruction.get());
  hlo::Builder builder(&computation);
  bool changed = false;
  for (Instruction* instruction : instructions) {
    // An annotation is the user's word on this very value.
    if (instruction->has_sharding() || !instruction->control_predecessors().empty()) continue;
    if (instruction->users().empty() && !instruction->IsRoot()) continue;
    changed |= ApplyTo(instruction, rules, builder);
  }
  if (changed) {
    computation.RemoveDead();
    computation.SortTopologically();
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> RunSimplify(hlo::Module& module) {
  const RulesByOpcode rules = Collect();
  bool changed = false;
  for (size_t i = 0; i < module.computations().size(); ++i) {
    Computation& computation = *module.computations()[i];
    for (int round = 0; round < kMaxRounds && Round(computation, rules); ++round) changed = true;
  }
  return changed;
}

}  // namespace gangway::passes
