// Completion of shardings (GSPMD section 3.5; sdy): from the annotated values of a module to all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gangway/hlo/module.h"
#include "gangway/mesh/sharding.h"

namespace gangway::propagate {

// An index of the whole program (batch, model, heads ...): dimensions that are the same wherever they occur.
struct IndexClass {
  int id = 0;                 // the same for every propagation of a module as it was
  int64_t extent = 1;         // of its largest dimension
  double flops = 0;           // of the products it takes part in
  double reduced = 0;         // elements of the reductions it takes part in
  bool meets_itself = false;  // some value has it twice, as queries and keys of one sequence
  AxisList annotated;         // axes that annotations put on it somewhere
  std::string example;        // "%name dimension 0"
};

// An index is split by an axis wherever the program leaves both open: a wish beside the annotations, weaker than they.
struct Placement {
  int index = 0;       // IndexClass::id
  AxisRef axis;        // of the mesh over which completion works
  bool minor = false;  // where a value has the index twice: its minor dimension, not its major one
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct PropagateOptions {
  // May completion choose these shardings? One per leaf of the entry's parameters / result, a single entry stands for
  // all; empty means as the module's config says.
  std::vector<bool> propagate_to_parameters = {};
  std::vector<bool> propagate_to_output = {};
  std::vector<Placement> placements = {};
  // May a dimension have more shards than elements, the last of them empty? Six experts on eight devices.
  bool empty_shards = false;
  bool record_origins = false;  // fills PropagationReport::origins and shared_leaves
};

// Two shardings of one value that cannot both hold: the first stayed.
struct Conflict {
  std::string instruction;
  int64_t leaf = 0;
  std::string kept, refused, reason;
};

// Where an axis on a dimension of a value comes from: it was taken over from `from`, or annotated when that is empty.
struct Origin {
  std::string instruction;
  int64_t leaf = 0, dim = 0;
  std::string axes;
  std::string from;
  int64_t from_leaf = 0;
  std::string rule;  // of the operation it came through
};

// A leaf of an instruction that is laid out as one value with a leaf of another: what get-tuple-element takes, a loop's
// parameters and results. Origins name the other.
struct SharedLeaf {
  std::string instruction;
  int64_t leaf = 0;
  std::string first;
  int64_t first_leaf = 0;
};

struct PropagationReport {
  MeshRef mesh;  // over which every sharding is expressed
  std::vector<Conflict> conflicts;
  std::vector<std::string> inexpressible;  // annotations kept over a mesh of their own
  std::vector<Origin> origins;
  std::vector<SharedLeaf> shared_leaves;
  // That take part in products, those with most flops first; then those that are only reduced and meet themselves.
  std::vector<IndexClass> indices;
  bool would_be_empty = false;  // a dimension has fewer shards than it might, for some would be empty
  int64_t rounds = 0;           // rules applied
};

// Gives every instruction of the entry and of what while, call and conditional run (not the scalar computations of
// reductions, sorts, scatters) a closed sharding per leaf, over one mesh. Annotations stay as they are. `report` may be
// null. Fails, with the instruction named, on annotations that do not fit.
absl::Status Propagate(hlo::Module& module, const PropagateOptions& options, PropagationReport* report);

}  // namespace gangway::propagate
