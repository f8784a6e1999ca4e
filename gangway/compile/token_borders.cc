#include "gangway/compile/token_borders.h"

#include <memory>
#include <utility>
#include <vector>

namespace gangway::compile {
namespace {

Shape EmptyArray() { return Shape(DType::kPred, {0}); }

hlo::Instruction* EmptyConstant(hlo::Computation* computation) {
  hlo::ConstantAttr attr{std::make_shared<const Literal>(EmptyArray())};
  return computation->Add(hlo::Opcode::kConstant, EmptyArray(), {}, std::move(attr));
}

bool ReplaceParameters(hlo::Computation* entry) {
  bool changed = false;
  for (hlo::Instruction* parameter : entry->parameters()) {
    if (!parameter->shape().IsToken()) continue;
    parameter->ReplaceAllUsesWith(entry->Add(hlo::Opcode::kAfterAll, Shape::Token(), {}, {}));
    parameter->set_shape(EmptyArray());
    parameter->set_shardings(std::nullopt);
    changed = true;
  }
  return changed;
}

// The elements of a tuple, or the one result.
bool ReplaceResults(hlo::Computation* entry) {
  hlo::Instruction* root = entry->root();
  if (root->shape().IsToken()) {
    entry->set_root(EmptyConstant(entry));
    return true;
  }
  if (root->opcode() != hlo::Opcode::kTuple) return false;
  std::vector<hlo::Instruction*> elements = root->operands();
  std::vector<Shape> shapes;
  bool changed = false;
  for (hlo::Instruction*& element : elements) {
    if (element->shape().IsToken()) {
      element = EmptyConstant(entry);
      changed = true;
    }
    shapes.push_back(element->shape());
  }
  if (!changed) return false;
  hlo::Instruction* tuple = entry->Add(hlo::Opcode::kTuple, Shape::Tuple(std::move(shapes)), std::move(elements), {});
  tuple->set_metadata(root->metadata());
  tuple->set_shardings(root->shardings());
  entry->set_root(tuple);
  return true;
}

}  // namespace

void ReplaceTokensAtBorders(hlo::Module* module) {
  const bool parameters = ReplaceParameters(module->entry());
  const bool results = ReplaceResults(module->entry());
  if (!parameters && !results) return;
  module->entry()->SortTopologically();
  module->entry()->RemoveDead();
}

}  // namespace gangway::compile
