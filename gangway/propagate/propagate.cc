#include "gangway/propagate/propagate.h"

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

class Solver {
 public:
  Solver(Graph& graph, const PropagateOptions& options, PropagationReport* report)
      : graph_(graph), affinity_(graph), record_(options.record_origins && report != nullptr), report_(report) {}

  // User priorities first; within one, the stages twice: with every axis kept for the index it serves best, then
  // without.
  void Run() {
    for (int priority : Priorities()) {
      for (const Affinity* affinity :
           {static_cast<const Affinity*>(&affinity_), static_cast<const Affinity*>(nullptr)}) {
        for (int stage = 0; stage < kStages; ++stage) Settle({stage, priority, affinity});
      }
    }
  }

 private:
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
    std::deque<int> queue;
    std::vector<bool> queued(count, true);
    for (int i = 0; i < count; ++i) queue.push_back(i);
    int current = 0;
    const ChangeCallback changed = [&](int value, int64_t dim, const AxisList& added, int from) {
      if (record_) Record(value, dim, added, from, current);
      for (int relation : graph_.relations_of(value)) {
        if (queued[relation]) continue;
        queued[relation] = true;
        queue.push_back(relation);
      }
    };
    while (!queue.empty()) {
      current = queue.front();
      queue.pop_front();
      queued[current] = false;
      Apply(graph_, graph_.relations()[current], limits, changed);
      if (report_ != nullptr) ++report_->rounds;
    }
  }

  void Record(int value, int64_t dim, const AxisList& added, int from, int relation) {
    const Value& v = graph_.values()[value];
    report_->origins.push_back({v.instruction->name(), v.leaf, dim, AxesToString(*graph_.mesh(), added),
                                graph_.values()[from].instruction->name(),
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
  Solver(graph, options, report).Run();
  if (report != nullptr) {
    report->mesh = graph.mesh();
    ReportDisagreements(graph, report);
  }
  graph.WriteBack();
  return absl::OkStatus();
}

}  // namespace gangway::propagate
