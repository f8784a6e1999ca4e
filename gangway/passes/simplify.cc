#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "gangway/passes/passes.h"
#include "gangway/passes/simplify_rules.h"

namespace gangway::passes {
namespace {

using hlo::Computation;
using hlo::Instruction;

constexpr int kMaxRounds = 16;  // a round that changes nothing ends the pass; chains of views take one each

using RulesByOpcode = std::array<std::vector<Rule>, hlo::kOpcodeCount>;

RulesByOpcode Collect(std::initializer_list<absl::Span<const OpRule>> families) {
  RulesByOpcode rules;
  for (absl::Span<const OpRule> family : families) {
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

// What is seen through would be lost.
bool ReadsAnnotated(const Instruction& instruction) {
  return std::any_of(instruction.operands().begin(), instruction.operands().end(), [](const Instruction* operand) {
    return operand->has_sharding() && operand->opcode() != hlo::Opcode::kParameter;
  });
}

bool Round(Computation& computation, const RulesByOpcode& rules) {
  std::vector<Instruction*> instructions;
  for (const auto& instruction : computation.instructions()) instructions.push_back(instruction.get());
  hlo::Builder builder(&computation);
  bool changed = false;
  for (Instruction* instruction : instructions) {
    // An annotation is the user's word on this very value.
    if (instruction->has_sharding() || !instruction->control_predecessors().empty()) continue;
    if (ReadsAnnotated(*instruction)) continue;
    if (instruction->users().empty() && !instruction->IsRoot()) continue;
    changed |= ApplyTo(instruction, rules, builder);
  }
  if (changed) {
    computation.RemoveDead();
    computation.SortTopologically();
  }
  return changed;
}

bool RunRules(hlo::Module& module, const RulesByOpcode& rules) {
  bool changed = false;
  for (size_t i = 0; i < module.computations().size(); ++i) {
    Computation& computation = *module.computations()[i];
    for (int round = 0; round < kMaxRounds && Round(computation, rules); ++round) changed = true;
  }
  if (changed) module.SortComputations();  // a rule may have made the sum that it calls
  return changed;
}

}  // namespace

absl::StatusOr<bool> RunSimplify(hlo::Module& module) {
  return RunRules(module, Collect({ViewRules(), SliceRules(), ArithmeticRules(), CollectiveRules()}));
}

absl::StatusOr<bool> RunSimplifyViews(hlo::Module& module) { return RunRules(module, Collect({ViewRules()})); }

}  // namespace gangway::passes
