#include "gangway/propagate/propagate.h"

#include <algorithm>
#include <array>
#include <deque>
#include <set>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/propagate/affinity.h"
#include "gangway/propagate/graph.h"
#include "gangway/propagate/step.h"

namespace gangway::propagate {
namespace {

constexpr int kStages = 4;

// Relations that wait: the strongest first, so that products meet what has come all the way to them; then who came
// first. One that waits already keeps its place.
class RelationQueue {
 public:
  explicit RelationQueue(const std::vector<Relation>& relations) : relations_(relations), waits_(relations.size()) {}

  bool empty() const {
    return std::all_of(queues_.begin(), queues_.end(), [](const std::deque<int>& queue) { return queue.empty(); });
  }
  void Add(int relation) {
    if (waits_[relation]) return;
    waits_[relation] = true;
    queues_[StageOf(relations_[relation])].push_back(relation);
  }
  int Take() {
    std::deque<int>& queue = *std::find_if(queues_.begin(), queues_.end(), [](const auto& q) { return !q.empty(); });
    const int relation = queue.front();
    queue.pop_front();
    waits_[relation] = false;
    return relation;
  }

 private:
  // Of its strongest factor.
  static int StageOf(const Relation& relation) {
    int stage = relation.factors.empty() ? 0 : kStages - 1;
    for (const RelationFactor& factor : relation.factors) stage = std::min(stage, factor.stage);
    return stage;
  }

  const std::vector<Relation>& relations_;
  std::array<std::deque<int>, kStages> queues_;
  std::vector<bool> waits_;
};

class Solver {
 public:
  Solver(Graph& graph, const PropagateOptions& options, PropagationReport* report)
      : graph_(graph), affinity_(graph), record_(options.record_origins && report != nullptr), report_(report) {}

  // User priorities first; within one, the stages twice: with every axis kept for the index it serves best, then
  // without.
  void Run(const std::vector<Placement>& placements) {
    for (const Placement& placement : placements) Place(placement);
    for (int priority : Priorities()) {
      for (const Affinity* affinity :
           {static_cast<const Affinity*>(&affinity_), static_cast<const Affinity*>(nullptr)}) {
        for (int stage = 0; stage < kStages; ++stage) Settle({stage, priority, affinity});
      }
    }
  }

  // Clients name whole axes only: where completion chose a part of one for what they hold, it and what follows go.
  void DropSubAxesOutside() {
    for (Value& value : graph_.values()) {
      if (!value.even || value.annotated || value.frozen) continue;
      for (DimSharding& dim : value.sharding.dims) {
        auto part = std::find_if(dim.axes.begin(), dim.axes.end(),
                                 [&](const AxisRef& ref) { return !IsFullAxis(*graph_.mesh(), ref); });
        dim.axes.erase(part, dim.axes.end());
      }
    }
  }

  const Affinity& affinity() const { return affinity_; }

 private:
  void Place(const Placement& placement) {
    for (size_t v = 0; v < graph_.values().size(); ++v) {
      Value& value = graph_.values()[v];
      if (value.frozen || value.even) continue;
      for (int64_t i = 0; i < value.shape.rank(); ++i) {
        const int64_t dim = placement.minor ? value.shape.rank() - 1 - i : i;
        if (affinity_.ClassOf(static_cast<int>(v), dim) != placement.index || !value.sharding.dims[dim].open) continue;
        const int64_t shards = value.sharding.ShardCount(dim) * placement.axis.size;
        if (value.shape.dim(dim) % shards != 0 || Overlaps(value.sharding.UsedAxes(), placement.axis)) continue;
        value.sharding.dims[dim].axes.push_back(placement.axis);
        MergeSubAxes(&value.sharding.dims[dim].axes);
      }
    }
  }

  std::set<int> Priorities() const {
    std::set<int> priorities = {0};
    for (const Value& value : graph_.values()) {
      for (const DimSharding& dim : value.sharding.dims) priorities.insert(dim.priority.value_or(0));
    }
    return priorities;
  }

  // Applies relations until none changes anything: each change brings back the relations of the changed value.
  void Settle(const StepLimits& limits) {
    const int count = static_cast<int>(graph_.relations().size());
    RelationQueue queue(graph_.relations());
    for (int i = 0; i < count; ++i) queue.Add(i);
    int current = 0;
    const ChangeCallback changed = [&](int value, int64_t dim, const AxisList& added, int from) {
      if (record_) Record(value, dim, added, from, current);
      for (int relation : graph_.relations_of(value)) queue.Add(relation);
    };
    while (!queue.empty()) {
      current = queue.Take();
      Apply(graph_, graph_.relations()[current], limits, changed);
      if (report_ != nullptr) ++report_->rounds;
    }
  }

  void Record(int value, int64_t dim, const AxisList& added, int from, int relation) {
    const Value& v = graph_.values()[value];
    report_->origins.push_back({v.instruction->name(), v.leaf, dim, AxesToString(*graph_.mesh(), added),
                                graph_.values()[from].instruction->name(), graph_.values()[from].leaf,
                                graph_.relations()[relation].instruction->name()});
  }

  Graph& graph_;
  const Affinity affinity_;
  const bool record_;
  PropagationReport* report_;
};

void ReportDisagreements(const Graph& graph, PropagationReport* report) {
  for (const Relation& relation : graph.relations()) {
    for (const Disagreement& found : Disagreements(graph, relation)) {
      const Value& refused = graph.values()[found.refused];
      report->conflicts.push_back({refused.instruction->name(), refused.leaf,
                                   AxesToString(*graph.mesh(), found.refused_axes),
                                   AxesToString(*graph.mesh(), found.kept_axes),
                                   absl::StrCat("at ", relation.instruction->name(), ", against ",
                                                graph.values()[found.kept].instruction->name())});
    }
  }
}

}  // namespace

absl::Status Propagate(hlo::Module& module, const PropagateOptions& options, PropagationReport* report) {
  if (module.entry() == nullptr) return absl::InvalidArgumentError(absl::StrCat(module.name(), " has no entry"));
  GW_ASSIGN_OR_RETURN_WITH(Graph graph, Graph::Make(module, options, report), "propagate");
  Solver solver(graph, options, report);
  solver.Run(options.placements);
  solver.DropSubAxesOutside();
  if (report != nullptr) {
    report->indices = solver.affinity().Classes(graph);
    report->mesh = graph.mesh();
    report->would_be_empty = graph.refused_empty();
    ReportDisagreements(graph, report);
    if (options.record_origins) report->shared_leaves = graph.SharedLeaves();
  }
  graph.WriteBack();
  return absl::OkStatus();
}

}  // namespace gangway::propagate
