#include "gangway/hlo/computation.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "gangway/base/check.h"
#include "gangway/hlo/module.h"

namespace gangway::hlo {
namespace {

bool IsRemovableWithoutUsers(const Instruction& instruction) {
  return !instruction.IsRoot() && instruction.opcode() != Opcode::kParameter && !instruction.HasSideEffect();
}

}  // namespace

Instruction* Computation::Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands, Attributes attributes,
                              std::string name) {
  name = module_->UniqueName(name.empty() ? OpcodeName(opcode) : absl::string_view(name));
  instructions_.push_back(std::unique_ptr<Instruction>(
      new Instruction(module_->NextId(), std::move(name), opcode, std::move(shape), this)));
  Instruction* added = instructions_.back().get();
  added->operands_ = std::move(operands);
  for (Instruction* operand : added->operands_) {
    GW_CHECK(operand->parent_ == this, added->name_, " takes ", operand->name_, " of another computation");
    operand->users_.push_back(added);
  }
  added->attributes_ = std::move(attributes);
  if (const auto* parameter = added->attr_if<ParameterAttr>()) {
    size_t number = parameter->number;
    if (parameters_.size() <= number) parameters_.resize(number + 1);
    parameters_[number] = added;
  }
  return added;
}

Instruction* Computation::AddClone(const Instruction& of, Shape shape, std::vector<Instruction*> operands) {
  Instruction* clone = Add(of.opcode_, std::move(shape), std::move(operands), of.attributes_, of.name_);
  clone->called_ = of.called_;
  clone->shardings_ = of.shardings_;
  clone->metadata_ = of.metadata_;
  clone->frontend_attributes_ = of.frontend_attributes_;
  clone->backend_config_ = of.backend_config_;
  clone->extra_text_ = of.extra_text_;
  return clone;
}

void Computation::Remove(Instruction* instruction) {
  GW_CHECK(instruction->users_.empty() && root_ != instruction, instruction->name_, " is still used");
  for (Instruction* operand : instruction->operands_) {
    auto it = std::find(operand->users_.begin(), operand->users_.end(), instruction);
    operand->users_.erase(it);
  }
  auto it = std::find_if(instructions_.begin(), instructions_.end(),
                         [&](const auto& owned) { return owned.get() == instruction; });
  instructions_.erase(it);
}

int64_t Computation::RemoveDead() {
  absl::flat_hash_set<const Instruction*> dead;
  absl::flat_hash_map<Instruction*, size_t> live_users;  // of operands of the dead
  std::vector<Instruction*> worklist;
  for (const auto& instruction : instructions_) {
    if (instruction->users_.empty() && IsRemovableWithoutUsers(*instruction)) worklist.push_back(instruction.get());
  }
  while (!worklist.empty()) {
    Instruction* instruction = worklist.back();
    worklist.pop_back();
    dead.insert(instruction);
    for (Instruction* operand : instruction->operands_) {
      const auto it = live_users.try_emplace(operand, operand->users_.size()).first;
      if (--it->second == 0 && IsRemovableWithoutUsers(*operand)) worklist.push_back(operand);
    }
  }
  if (dead.empty()) return 0;
  for (const auto& instruction : instructions_) {
    auto& before = instruction->control_predecessors_;
    before.erase(std::remove_if(before.begin(), before.end(), [&](Instruction* i) { return dead.contains(i); }),
                 before.end());
  }
  // Each list of users is gone through once, however many of them go.
  for (const auto& [operand, users] : live_users) {
    if (dead.contains(operand)) continue;
    auto& all = operand->users_;
    all.erase(std::remove_if(all.begin(), all.end(), [&](Instruction* i) { return dead.contains(i); }), all.end());
  }
  instructions_.erase(
      std::remove_if(instructions_.begin(), instructions_.end(), [&](const auto& i) { return dead.contains(i.get()); }),
      instructions_.end());
  return static_cast<int64_t>(dead.size());
}

void Computation::RemoveParameters(const std::vector<bool>& keep) {
  std::vector<Instruction*> old = std::exchange(parameters_, {});
  for (size_t i = 0; i < old.size(); ++i) {
    if (!keep[i]) {
      Remove(old[i]);
      continue;
    }
    old[i]->mutable_attr<ParameterAttr>().number = static_cast<int64_t>(parameters_.size());
    parameters_.push_back(old[i]);
  }
}

void Computation::Reorder(absl::Span<Instruction* const> order) {
  GW_CHECK(order.size() == instructions_.size(), name_, " has ", instructions_.size(), " instructions");
  absl::flat_hash_map<const Instruction*, std::unique_ptr<Instruction>> pending;
  for (auto& instruction : instructions_) {
    const Instruction* key = instruction.get();
    pending.emplace(key, std::move(instruction));
  }
  instructions_.clear();
  for (const Instruction* next : order) {
    const auto it = pending.find(next);
    GW_CHECK(it != pending.end(), name_, " does not have ", next->name(), ", or has it once");
    instructions_.push_back(std::move(it->second));
    pending.erase(it);
  }
}

void Computation::SortTopologically() {
  absl::flat_hash_map<const Instruction*, std::unique_ptr<Instruction>> pending;
  std::vector<Instruction*> order;
  order.reserve(instructions_.size());
  for (auto& instruction : instructions_) {
    order.push_back(instruction.get());
    pending.emplace(order.back(), std::move(instruction));
  }
  instructions_.clear();
  // Depth-first over operands with an explicit stack: chains may be longer than the thread's stack allows.
  absl::flat_hash_set<const Instruction*> opened;
  std::vector<Instruction*> stack;
  for (Instruction* start : order) {
    stack.push_back(start);
    while (!stack.empty()) {
      Instruction* top = stack.back();
      auto it = pending.find(top);
      if (it == pending.end()) {
        stack.pop_back();
        continue;
      }
      bool first_visit = opened.insert(top).second;
      if (first_visit) {
        for (auto p = top->control_predecessors_.rbegin(); p != top->control_predecessors_.rend(); ++p) {
          if (pending.contains(*p)) stack.push_back(*p);
        }
        for (auto p = top->operands_.rbegin(); p != top->operands_.rend(); ++p) {
          if (pending.contains(*p)) stack.push_back(*p);
        }
        continue;
      }
      instructions_.push_back(std::move(it->second));
      pending.erase(it);
      stack.pop_back();
    }
  }
}

}  // namespace gangway::hlo
