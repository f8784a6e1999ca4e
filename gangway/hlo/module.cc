#include "gangway/hlo/module.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"

namespace gangway::hlo {
namespace {

using ComputationMap = absl::flat_hash_map<const Computation*, Computation*>;

// `add.12` -> `add`; a name without a numeric suffix stays.
absl::string_view Stem(absl::string_view name) {
  size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos || dot + 1 == name.size()) return name;
  int64_t number;
  return absl::SimpleAtoi(name.substr(dot + 1), &number) ? name.substr(0, dot) : name;
}

// Callees before callers, each once. Iterative: call chains come from files and may be long.
void AppendPostOrder(Computation* start, absl::flat_hash_set<const Computation*>* seen,
                     std::vector<Computation*>* order) {
  struct Frame {
    Computation* computation;
    std::vector<Computation*> callees;
    size_t next = 0;
  };
  auto callees = [](Computation* computation) {
    std::vector<Computation*> called;
    for (const auto& instruction : computation->instructions()) {
      called.insert(called.end(), instruction->called().begin(), instruction->called().end());
    }
    return called;
  };
  if (!seen->insert(start).second) return;
  std::vector<Frame> stack;
  stack.push_back({start, callees(start)});
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next == top.callees.size()) {
      order->push_back(top.computation);
      stack.pop_back();
      continue;
    }
    Computation* callee = top.callees[top.next++];
    if (seen->insert(callee).second) stack.push_back({callee, callees(callee)});
  }
}

}  // namespace

std::string Module::UniqueName(absl::string_view wanted) {
  if (names_.insert(std::string(wanted)).second) return std::string(wanted);
  absl::string_view stem = Stem(wanted);
  int64_t& suffix = next_suffix_[stem];
  while (true) {
    std::string name = absl::StrCat(stem, ".", ++suffix);
    if (names_.insert(name).second) return name;
  }
}

Computation* Module::AddComputation(std::string name) {
  // Computations and instructions have separate name spaces in HLO text; names of instructions have no blanks.
  std::string unique = name;
  while (FindComputation(unique) != nullptr) {
    unique = absl::StrCat(name, ".", ++next_suffix_[absl::StrCat("computation ", name)]);
  }
  computations_.push_back(
      std::unique_ptr<Computation>(new Computation(this, ++next_computation_id_, std::move(unique))));
  by_name_.emplace(computations_.back()->name(), computations_.back().get());
  return computations_.back().get();
}

Computation* Module::FindComputation(absl::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

std::vector<Computation*> Module::PostOrder() const {
  std::vector<Computation*> order;
  absl::flat_hash_set<const Computation*> seen;
  if (entry_ != nullptr) AppendPostOrder(entry_, &seen, &order);
  return order;
}

void Module::RemoveUnreachable() {
  absl::flat_hash_set<const Computation*> reachable;
  for (Computation* computation : PostOrder()) reachable.insert(computation);
  auto unreachable = [&](const auto& computation) { return !reachable.contains(computation.get()); };
  for (const auto& computation : computations_) {
    if (unreachable(computation)) by_name_.erase(computation->name());
  }
  computations_.erase(std::remove_if(computations_.begin(), computations_.end(), unreachable), computations_.end());
}

void Module::SortComputations() {
  std::vector<Computation*> order;
  absl::flat_hash_set<const Computation*> seen;
  for (const auto& computation : computations_) {
    if (computation.get() != entry_) AppendPostOrder(computation.get(), &seen, &order);
  }
  if (entry_ != nullptr) AppendPostOrder(entry_, &seen, &order);
  absl::flat_hash_map<const Computation*, size_t> place;
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::sort(computations_.begin(), computations_.end(),
            [&](const auto& a, const auto& b) { return place[a.get()] < place[b.get()]; });
}

int64_t Module::InstructionCount() const {
  int64_t count = 0;
  for (const auto& computation : computations_) count += computation->size();
  return count;
}

Computation* Module::CloneComputation(const Computation& of, ComputationMap* done) {
  if (auto it = done->find(&of); it != done->end()) return it->second;
  // Callees first, so that the copies can name them; post-order keeps this free of recursion.
  std::vector<Computation*> order;
  absl::flat_hash_set<const Computation*> seen;
  AppendPostOrder(const_cast<Computation*>(&of), &seen, &order);
  for (const Computation* source : order) {
    if (done->contains(source)) continue;
    Computation* copy = AddComputation(source->name());
    absl::flat_hash_map<const Instruction*, Instruction*> mapped;
    for (const auto& instruction : source->instructions()) {
      std::vector<Instruction*> operands;
      for (const Instruction* operand : instruction->operands()) operands.push_back(mapped.at(operand));
      Instruction* clone = copy->AddClone(*instruction, instruction->shape(), std::move(operands));
      for (Computation*& callee : clone->called_) callee = done->at(callee);
      for (Instruction* before : instruction->control_predecessors()) clone->AddControlPredecessor(mapped.at(before));
      mapped[instruction.get()] = clone;
    }
    if (source->root() != nullptr) copy->set_root(mapped.at(source->root()));
    (*done)[source] = copy;
  }
  return done->at(&of);
}

std::unique_ptr<Module> Module::Clone() const {
  auto clone = std::make_unique<Module>(name_);
  clone->config_ = config_;
  clone->stack_frames_ = stack_frames_;
  clone->meshes_ = meshes_;
  ComputationMap done;
  for (const auto& computation : computations_) clone->CloneComputation(*computation, &done);
  if (entry_ != nullptr) clone->entry_ = done.at(entry_);
  return clone;
}

}  // namespace gangway::hlo
