// The module as completion sees it: array values, and the relations between their dimensions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"
#include "gangway/mesh/sharding.h"
#include "gangway/propagate/propagate.h"
#include "gangway/rules/rule.h"

namespace gangway::propagate {

// One sharding to be found. Leaves of several instructions share a value where they must be laid out alike: a tuple's
// leaf and what get-tuple-element takes from it; a loop's result, its parameters and the tuple its body ends with.
struct Value {
  const hlo::Instruction* instruction = nullptr;  // the first that has it
  int64_t leaf = 0;                               // of that instruction
  Shape shape;
  Sharding sharding;       // over the graph's mesh unless frozen
  bool annotated = false;  // the program says something about it
  bool even = false;       // of the entry's parameters and result: clients hold arrays in equal shards only
  bool frozen = false;     // cannot be expressed over the mesh: kept as it is, out of reach of completion
};

// Where a factor occurs.
struct Use {
  int tensor = 0;  // index into Relation::values
  int dim = 0;
  int place = 0;  // among the factors of that dimension
};

struct RelationFactor {
  int64_t size = 1;
  rules::FactorKind kind = rules::FactorKind::kPassThrough;
  int stage = 0;          // 0 the strongest
  std::vector<Use> uses;  // at least two, of different tensors
};

// Dimensions of some values that are the same index: one operation, or two ends of an identity.
struct Relation {
  enum class Kind : uint8_t { kFactors, kToLocal };  // kToLocal: values[0] global, values[1] local along manual axes
  Kind kind = Kind::kFactors;
  const hlo::Instruction* instruction = nullptr;
  // A barrier of two values lets axes pass from the first to the second, or back, only where allowed.
  bool forward = true, backward = true;
  std::vector<int> values;
  std::vector<rules::ValueFactors> factors_of;  // per tensor
  std::vector<int64_t> sizes;                   // per factor of the rule, for merged dimensions
  std::vector<RelationFactor> factors;
};

class Graph {
 public:
  // Annotations become the values' first shardings. Fails when one does not fit its value.
  static absl::StatusOr<Graph> Make(hlo::Module& module, const PropagateOptions& options, PropagationReport* report);

  const MeshRef& mesh() const { return mesh_; }
  std::vector<Value>& values() { return values_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Relation>& relations() const { return relations_; }
  const std::vector<int>& relations_of(int value) const { return relations_of_[value]; }
  // Whether completion gives a dimension of so many elements so many shards.
  bool MayHave(int64_t extent, int64_t shards) const { return shards <= extent || (empty_shards_ && extent > 1); }
  // Some dimension was refused more shards than it has elements.
  bool refused_empty() const { return refused_empty_; }
  void NoteRefused(int64_t extent) { refused_empty_ |= extent > 1; }

  // Every leaf of an instruction that is not the first to have its value.
  std::vector<SharedLeaf> SharedLeaves() const;

  // Closed shardings on every instruction. A root that was only added to have a sharding of its own, and has none,
  // goes.
  void WriteBack() const;

 private:
  friend class GraphBuilder;
  MeshRef mesh_;
  bool empty_shards_ = false, refused_empty_ = false;
  hlo::Instruction* added_root_ = nullptr;       // of the entry
  std::vector<hlo::Computation*> computations_;  // the entry and what control flow runs
  std::vector<Value> values_;
  std::vector<Relation> relations_;
  std::vector<std::vector<int>> relations_of_;
  absl::flat_hash_map<const hlo::Instruction*, std::vector<int>> leaves_;  // value of every leaf
};

}  // namespace gangway::propagate
