#include "gangway/dataflow/graph.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gangway::dataflow {

const char* NodeKindName(NodeKind kind) {
  switch (kind) {
    case NodeKind::kCompute:
      return "compute";
    case NodeKind::kUpload:
      return "upload";
    case NodeKind::kDownload:
      return "download";
    case NodeKind::kCopy:
      return "copy";
  }
  return "?";
}

std::optional<size_t> Node::PartOf(resource::WorkerId worker) const {
  auto it = std::lower_bound(workers.begin(), workers.end(), worker);
  if (it == workers.end() || *it != worker) return std::nullopt;
  return it - workers.begin();
}

std::string Graph::ToString() const {
  std::string text;
  auto edge = [](std::string* out, EdgeId id) { absl::StrAppend(out, "%", id.value()); };
  auto worker = [](std::string* out, resource::WorkerId id) { absl::StrAppend(out, "w", id.value()); };
  for (const Node& node : nodes) {
    if (!node.outputs.empty()) absl::StrAppend(&text, absl::StrJoin(node.outputs, ", ", edge), " = ");
    absl::StrAppend(&text, NodeKindName(node.kind), " ", node.name, "(", absl::StrJoin(node.inputs, ", ", edge),
                    ") on ", absl::StrJoin(node.workers, ",", worker), "\n");
  }
  return text;
}

absl::Status Validate(const Graph& graph) {
  if (graph.num_inputs < 0 || graph.num_edges < graph.num_inputs) {
    return absl::InvalidArgumentError("dataflow graph with fewer edges than inputs");
  }
  std::vector<bool> made(graph.num_edges, false);
  for (int i = 0; i < graph.num_inputs; ++i) made[i] = true;
  for (const Node& node : graph.nodes) {
    auto fail = [&](absl::string_view what, EdgeId id) {
      return absl::InvalidArgumentError(absl::StrCat("dataflow node ", node.name, ": ", what, " %", id.value()));
    };
    if (node.workers.empty())
      return absl::InvalidArgumentError(absl::StrCat("dataflow node ", node.name, ": no worker"));
    if (std::adjacent_find(node.workers.begin(), node.workers.end(), std::greater_equal<>()) != node.workers.end()) {
      return absl::InvalidArgumentError(absl::StrCat("dataflow node ", node.name, ": workers out of order"));
    }
    for (EdgeId id : node.inputs) {
      if (id.value() < 0 || id.value() >= graph.num_edges || !made[id.value()]) return fail("uses unmade", id);
    }
    for (EdgeId id : node.outputs) {
      if (id.value() < 0 || id.value() >= graph.num_edges) return fail("makes unknown", id);
      if (made[id.value()]) return fail("makes again", id);
      made[id.value()] = true;
    }
  }
  return absl::OkStatus();
}

Graph SingleNode(NodeKind kind, std::string name, int inputs, int outputs, std::vector<resource::WorkerId> workers) {
  Node node;
  node.kind = kind;
  node.name = std::move(name);
  std::sort(workers.begin(), workers.end());
  node.workers = std::move(workers);
  for (int i = 0; i < inputs; ++i) node.inputs.push_back(EdgeId(i));
  for (int i = 0; i < outputs; ++i) node.outputs.push_back(EdgeId(inputs + i));
  Graph graph;
  graph.num_inputs = inputs;
  graph.num_edges = inputs + outputs;
  graph.nodes.push_back(std::move(node));
  return graph;
}

}  // namespace gangway::dataflow
