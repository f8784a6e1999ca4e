// Leaves of all instructions, and which of them are one value.
#include "gangway/propagate/graph_builder.h"

namespace gangway::propagate {

using hlo::Instruction;
using hlo::Opcode;

void GraphBuilder::NumberLeaves() {
  for (const hlo::Computation* computation : graph_.computations_) {
    for (const auto& instruction : computation->instructions()) {
      std::vector<int>& leaves = graph_.leaves_[instruction.get()];
      const int64_t count = LeafCount(instruction->shape());
      for (int64_t leaf = 0; leaf < count; ++leaf) {
        leaves.push_back(static_cast<int>(parent_.size()));
        parent_.push_back(static_cast<int>(parent_.size()));
        leaf_of_.push_back({instruction.get(), leaf});
      }
    }
  }
}

int GraphBuilder::Find(int leaf) {
  while (parent_[leaf] != leaf) leaf = parent_[leaf] = parent_[parent_[leaf]];
  return leaf;
}

// The earlier leaf stands for both.
void GraphBuilder::Tie(const Instruction* a, int64_t a_leaf, const Instruction* b, int64_t b_leaf) {
  const int x = Find(graph_.leaves_[a][a_leaf]), y = Find(graph_.leaves_[b][b_leaf]);
  parent_[std::max(x, y)] = std::min(x, y);
}

void GraphBuilder::TieAll(const Instruction* a, const Instruction* b) {
  const int64_t count = std::min(LeafCount(a->shape()), LeafCount(b->shape()));
  for (int64_t leaf = 0; leaf < count; ++leaf) Tie(a, leaf, b, leaf);
}

void GraphBuilder::TieLeaves(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kGetTupleElement: {
      const int64_t index = instruction.attr<hlo::TupleIndexAttr>().index;
      const Instruction* tuple = instruction.operand(0);
      int64_t first = 0;
      for (int64_t i = 0; i < index; ++i) first += LeafCount(tuple->shape().tuple()[i]);
      for (int64_t leaf = 0; leaf < LeafCount(instruction.shape()); ++leaf)
        Tie(&instruction, leaf, tuple, first + leaf);
      break;
    }
    case Opcode::kWhile:
      TieAll(&instruction, instruction.called()[0]->parameter(0));
      TieAll(&instruction, instruction.called()[1]->parameter(0));
      TieAll(&instruction, instruction.called()[1]->root());
      break;
    case Opcode::kConditional:
      for (const hlo::Computation* branch : instruction.called()) TieAll(&instruction, branch->root());
      break;
    default:
      break;
  }
}

void GraphBuilder::MakeValues() {
  std::vector<int> value_of(parent_.size(), -1);
  std::vector<Shape> shapes;  // of the leaves of the instruction at hand
  for (size_t leaf = 0; leaf < parent_.size(); ++leaf) {
    if (leaf_of_[leaf].second == 0) shapes = Leaves(leaf_of_[leaf].first->shape());
    int& value = value_of[Find(static_cast<int>(leaf))];
    if (value >= 0) continue;
    value = static_cast<int>(graph_.values_.size());
    const auto& [instruction, index] = leaf_of_[leaf];
    Value& made = graph_.values_.emplace_back();
    made.instruction = instruction;
    made.leaf = index;
    made.shape = shapes[index];
    made.sharding = Sharding::Open(graph_.mesh_, made.shape.rank());
  }
  for (auto& [instruction, leaves] : graph_.leaves_) {
    for (int& leaf : leaves) leaf = value_of[Find(leaf)];
  }
  graph_.relations_of_.resize(graph_.values_.size());
}

}  // namespace gangway::propagate
