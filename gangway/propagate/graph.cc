#include "gangway/propagate/graph.h"

#include "gangway/propagate/graph_builder.h"

namespace gangway::propagate {

absl::StatusOr<Graph> Graph::Make(hlo::Module& module, const PropagateOptions& options, PropagationReport* report) {
  Graph graph;
  graph.empty_shards_ = options.empty_shards;
  absl::Status status = GraphBuilder(module, options, report, &graph).Build();
  if (!status.ok()) return status;
  return graph;
}

std::vector<SharedLeaf> Graph::SharedLeaves() const {
  std::vector<SharedLeaf> shared;
  for (const hlo::Computation* computation : computations_) {
    for (const auto& instruction : computation->instructions()) {
      const std::vector<int>& leaves = leaves_.at(instruction.get());
      for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
        const Value& value = values_[leaves[leaf]];
        const auto own = static_cast<int64_t>(leaf);
        if (value.instruction == instruction.get() && value.leaf == own) continue;
        shared.push_back({instruction->name(), own, value.instruction->name(), value.leaf});
      }
    }
  }
  return shared;
}

void Graph::WriteBack() const {
  for (hlo::Computation* computation : computations_) {
    for (const auto& instruction : computation->instructions()) {
      Shardings shardings;
      for (int value : leaves_.at(instruction.get())) shardings.push_back(values_[value].sharding.Closed());
      instruction->set_shardings(std::move(shardings));
    }
  }
  if (added_root_ == nullptr || added_root_->sharding() != added_root_->operand(0)->sharding()) return;
  added_root_->parent()->set_root(added_root_->operand(0));
  added_root_->parent()->Remove(added_root_);
}

}  // namespace gangway::propagate
