#include "gangway/propagate/graph.h"

#include "gangway/propagate/graph_builder.h"

namespace gangway::propagate {

absl::StatusOr<Graph> Graph::Make(hlo::Module& module, const PropagateOptions& options, PropagationReport* report) {
  Graph graph;
  absl::Status status = GraphBuilder(module, options, report, &graph).Build();
  if (!status.ok()) return status;
  return graph;
}

void Graph::WriteBack() const {
  for (hlo::Computation* computation : computations_) {
    for (const auto& instruction : computation->instructions()) {
      Shardings shardings;
      for (int value : leaves_.at(instruction.get())) shardings.push_back(values_[value].sharding.Closed());
      instruction->set_shardings(std::move(shardings));
    }
  }
}

}  // namespace gangway::propagate
