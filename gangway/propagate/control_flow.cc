#include "gangway/propagate/control_flow.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace gangway::propagate {

using hlo::Opcode;

std::vector<hlo::Computation*> ControlComputations(const hlo::Module& module) {
  std::vector<hlo::Computation*> found = {module.entry()};
  absl::flat_hash_set<hlo::Computation*> seen = {module.entry()};
  for (size_t next = 0; next < found.size(); ++next) {
    for (const auto& instruction : found[next]->instructions()) {
      const Opcode opcode = instruction->opcode();
      if (opcode != Opcode::kWhile && opcode != Opcode::kConditional && opcode != Opcode::kCall) continue;
      for (hlo::Computation* called : instruction->called()) {
        if (seen.insert(called).second) found.push_back(called);
      }
    }
  }
  return found;
}

namespace {

void SeparateRoot(hlo::Computation* computation) {
  hlo::Instruction* root = computation->root();
  if (root->opcode() == Opcode::kTuple || root->shape().IsToken()) return;
  if (!root->shape().IsTuple()) {
    if (root->opcode() == Opcode::kCopy && !root->has_sharding()) return;
    computation->set_root(computation->Add(Opcode::kCopy, root->shape(), {root}));
    computation->root()->set_metadata(root->metadata());
    return;
  }
  std::vector<hlo::Instruction*> elements;
  for (size_t i = 0; i < root->shape().tuple().size(); ++i) {
    elements.push_back(computation->Add(Opcode::kGetTupleElement, root->shape().tuple()[i], {root},
                                        hlo::TupleIndexAttr{static_cast<int64_t>(i)}));
  }
  computation->set_root(computation->Add(Opcode::kTuple, root->shape(), std::move(elements)));
}

}  // namespace

hlo::Instruction* SeparateRoots(hlo::Module& module, const std::vector<hlo::Computation*>& computations) {
  const hlo::Instruction* root = module.entry()->root();
  if (!root->has_sharding()) SeparateRoot(module.entry());
  for (hlo::Computation* computation : computations) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->opcode() == Opcode::kWhile) SeparateRoot(instruction->called()[1]);
      if (instruction->opcode() != Opcode::kConditional) continue;
      for (hlo::Computation* branch : instruction->called()) SeparateRoot(branch);
    }
  }
  hlo::Instruction* now = module.entry()->root();
  return now != root && now->opcode() == Opcode::kCopy ? now : nullptr;
}

}  // namespace gangway::propagate
