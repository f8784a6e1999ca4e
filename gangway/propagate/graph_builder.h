// Builds the graph of a module. Internal to this folder.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "gangway/propagate/graph.h"

namespace gangway::propagate {

// May completion choose the shardings of the entry's result / parameters, leaf by leaf?
const std::vector<bool>& OutputFlags(const hlo::Module& module, const PropagateOptions& options);
const std::vector<bool>& ParameterFlags(const hlo::Module& module, const PropagateOptions& options);

class GraphBuilder {
 public:
  GraphBuilder(hlo::Module& module, const PropagateOptions& options, PropagationReport* report, Graph* graph)
      : module_(module), options_(options), report_(report), graph_(*graph) {}

  absl::Status Build();

 private:
  // Leaves and which of them are one value.
  void NumberLeaves();
  void TieLeaves(const hlo::Instruction& instruction);
  void Tie(const hlo::Instruction* a, int64_t a_leaf, const hlo::Instruction* b, int64_t b_leaf);
  void TieAll(const hlo::Instruction* a, const hlo::Instruction* b);
  int Find(int leaf);
  void MakeValues();

  // What the program says.
  absl::Status ReadAnnotations();
  absl::Status Annotate(const hlo::Instruction& instruction, int64_t leaf, Sharding sharding);
  void CloseEntry();
  void SpreadManual();

  // Relations.
  absl::Status RelateByRule(const hlo::Instruction& instruction);
  void RelateControl(const hlo::Instruction& instruction);
  void RelateShardingCall(const hlo::Instruction& instruction);
  void RelateLeaves(const hlo::Instruction& owner, const hlo::Instruction* a, int64_t a_leaf, const hlo::Instruction* b,
                    int64_t b_leaf);
  void RelateAllLeaves(const hlo::Instruction& owner, const hlo::Instruction* a, const hlo::Instruction* b);
  void AddRelation(Relation relation);
  int ValueOf(const hlo::Instruction* instruction, int64_t leaf) const { return graph_.leaves_.at(instruction)[leaf]; }

  hlo::Module& module_;
  const PropagateOptions& options_;
  PropagationReport* report_;
  Graph& graph_;
  absl::flat_hash_map<int64_t, const hlo::Instruction*> groups_;  // first member by sharding group
  std::vector<int> parent_;                                       // union-find over leaves
  std::vector<std::pair<const hlo::Instruction*, int64_t>> leaf_of_;
};

}  // namespace gangway::propagate
