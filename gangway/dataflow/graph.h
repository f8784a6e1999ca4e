// A sharded dataflow program: nodes are computations and transfers on many devices, edges are logical buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/base/strong_id.h"
#include "gangway/resource/cluster.h"

namespace gangway::dataflow {

using NodeId = StrongId<struct NodeIdTag, int32_t>;  // index in Graph::nodes
using EdgeId = StrongId<struct EdgeIdTag, int32_t>;  // 0 .. num_edges-1; the first num_inputs come from outside

enum class NodeKind : uint8_t { kCompute, kUpload, kDownload, kCopy };
const char* NodeKindName(NodeKind kind);

// Bookkeeping is per node, worker and logical buffer, never per shard: it does not grow with the devices of a worker.
struct Node {
  NodeKind kind = NodeKind::kCompute;
  std::string name;
  std::vector<EdgeId> inputs;
  std::vector<EdgeId> outputs;
  std::vector<resource::WorkerId> workers;  // each runs its part and says so; ascending

  // The worker's place in `workers`.
  std::optional<size_t> PartOf(resource::WorkerId worker) const;
};

// Immutable once made, shared by all runs of it. Nodes are in an order in which every input is made before it is used.
struct Graph {
  std::vector<Node> nodes;
  int num_inputs = 0;
  int num_edges = 0;

  std::string ToString() const;  // one node a line: "%2 = compute jit_f(%0, %1) on w0,w1"
};

// Every edge has exactly one maker before its users, every node workers in ascending order. INVALID_ARGUMENT naming the
// node.
absl::Status Validate(const Graph& graph);

// The graph of one node whose inputs all come from outside. The workers in any order.
Graph SingleNode(NodeKind kind, std::string name, int inputs, int outputs, std::vector<resource::WorkerId> workers);

}  // namespace gangway::dataflow
