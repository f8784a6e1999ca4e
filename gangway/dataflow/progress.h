// How far one run of a dataflow graph has come. Pure state and transitions, no threads, no clock.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "gangway/dataflow/graph.h"

namespace gangway::dataflow {

// What an event brought about.
struct Step {
  std::vector<NodeId> ready;     // may be dispatched sequentially from now on: all their inputs are made
  std::vector<EdgeId> poisoned;  // will never be made; the run's error is theirs
  bool over = false;             // every node is done or will never run
};

class Progress {
 public:
  // The graph is shared by all its runs and must be valid.
  explicit Progress(std::shared_ptr<const Graph> graph);

  // The nodes whose inputs all come from outside. Call once, first.
  Step Begin();
  // A worker finished its part of a node, or failed it. Reports of unknown parts and repeated ones change nothing.
  Step PartDone(NodeId node, resource::WorkerId worker, const absl::Status& status);
  // A worker will not report any more: all its open parts fail.
  Step WorkerLost(resource::WorkerId worker, const absl::Status& status);

  bool over() const { return open_parts_ == 0; }
  // The first failure.
  const absl::Status& status() const { return status_; }
  bool IsOpen(NodeId node, resource::WorkerId worker) const { return OpenPart(node, worker).has_value(); }
  const Graph& graph() const { return *graph_; }
  const std::shared_ptr<const Graph>& shared_graph() const { return graph_; }

 private:
  struct NodeState {
    absl::InlinedVector<bool, 4> open;  // by index in Node::workers
    int open_parts = 0;
    int missing_inputs = 0;
    bool failed = false;
  };
  // By index in Node::workers; none when the part is unknown or was reported.
  std::optional<size_t> OpenPart(NodeId node, resource::WorkerId worker) const;
  void Fail(NodeId node, Step* step);
  void Finish(NodeId node, Step* step);

  std::shared_ptr<const Graph> graph_;
  absl::InlinedVector<NodeState, 1> nodes_;
  int open_parts_ = 0;
  absl::Status status_;
};

}  // namespace gangway::dataflow
