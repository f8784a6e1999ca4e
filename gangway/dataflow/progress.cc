#include "gangway/dataflow/progress.h"

#include <algorithm>
#include <utility>

namespace gangway::dataflow {

Progress::Progress(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {
  nodes_.resize(graph_->nodes.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = graph_->nodes[i];
    nodes_[i].open.resize(node.workers.size(), true);
    nodes_[i].open_parts = static_cast<int>(node.workers.size());
    nodes_[i].missing_inputs = static_cast<int>(std::count_if(
        node.inputs.begin(), node.inputs.end(), [&](EdgeId id) { return id.value() >= graph_->num_inputs; }));
    open_parts_ += nodes_[i].open_parts;
  }
}

Step Progress::Begin() {
  Step step;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].missing_inputs == 0) step.ready.push_back(NodeId(static_cast<int32_t>(i)));
  }
  step.over = over();
  return step;
}

std::optional<size_t> Progress::OpenPart(NodeId node, resource::WorkerId worker) const {
  if (node.value() < 0 || node.value() >= static_cast<int32_t>(nodes_.size())) return std::nullopt;
  const std::optional<size_t> part = graph_->nodes[node.value()].PartOf(worker);
  return part.has_value() && nodes_[node.value()].open[*part] ? part : std::nullopt;
}

Step Progress::PartDone(NodeId id, resource::WorkerId worker, const absl::Status& status) {
  Step step;
  if (const std::optional<size_t> part = OpenPart(id, worker)) {
    NodeState& node = nodes_[id.value()];
    node.open[*part] = false;
    --node.open_parts;
    --open_parts_;
    status_.Update(status);
    if (!status.ok()) Fail(id, &step);
    if (node.open_parts == 0 && !node.failed) Finish(id, &step);
  }
  step.over = over();
  return step;
}

Step Progress::WorkerLost(resource::WorkerId worker, const absl::Status& status) {
  Step all;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Step step = PartDone(NodeId(static_cast<int32_t>(i)), worker, status);
    all.poisoned.insert(all.poisoned.end(), step.poisoned.begin(), step.poisoned.end());
  }
  all.over = over();
  return all;
}

// The node's outputs are lost. Nodes downstream still report: their workers see the poison in their stores.
void Progress::Fail(NodeId id, Step* step) {
  NodeState& node = nodes_[id.value()];
  if (node.failed) return;
  node.failed = true;
  const auto& outputs = graph_->nodes[id.value()].outputs;
  step->poisoned.insert(step->poisoned.end(), outputs.begin(), outputs.end());
}

void Progress::Finish(NodeId id, Step* step) {
  const auto& outputs = graph_->nodes[id.value()].outputs;
  for (size_t i = id.value() + 1; i < nodes_.size(); ++i) {
    const auto& inputs = graph_->nodes[i].inputs;
    const auto made = std::count_if(inputs.begin(), inputs.end(), [&](EdgeId edge) {
      return std::find(outputs.begin(), outputs.end(), edge) != outputs.end();
    });
    if (made == 0) continue;
    nodes_[i].missing_inputs -= static_cast<int>(made);
    if (nodes_[i].missing_inputs == 0) step->ready.push_back(NodeId(static_cast<int32_t>(i)));
  }
}

}  // namespace gangway::dataflow
