// Collective instructions over mesh axes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gangway/hlo/builder.h"
#include "gangway/mesh/sharding.h"
#include "gangway/partition/coordinates.h"

namespace gangway::partition {

// Groups of a collective over `axes`: the compact iota form where the mesh's device order allows, so that texts and
// time do not grow with the mesh.
hlo::ReplicaGroupList GroupsOver(const Mesh& mesh, const AxisList& axes);

// The value that a reduction leaves unchanged.
Literal ReductionIdentity(Reduction reduction, DType dtype);
hlo::Opcode ReductionOpcode(Reduction reduction);

using DevicePairs = std::vector<std::pair<int64_t, int64_t>>;

// Adds collectives to one computation, each with a channel of its own. Borrows all it is given. Members of a group are
// ranked row-major over `axes`.
class CollectiveBuilder {
 public:
  CollectiveBuilder(Coordinates* coordinates, int64_t* next_channel)
      : coordinates_(coordinates), builder_(coordinates->builder()), next_channel_(next_channel) {}

  hlo::Instruction* AllGather(hlo::Instruction* x, int64_t dim, const Mesh& mesh, const AxisList& axes);
  hlo::Instruction* AllReduce(hlo::Instruction* x, const Mesh& mesh, const AxisList& axes, Reduction reduction);
  hlo::Instruction* ReduceScatter(hlo::Instruction* x, int64_t dim, const Mesh& mesh, const AxisList& axes,
                                  Reduction reduction);
  // Splits and joins along `dim`: piece j goes to rank j.
  hlo::Instruction* AllToAll(hlo::Instruction* x, int64_t dim, const Mesh& mesh, const AxisList& axes);
  hlo::Instruction* Permute(hlo::Instruction* x, DevicePairs pairs);

  Coordinates* coordinates() { return coordinates_; }
  hlo::Builder* builder() { return builder_; }

 private:
  hlo::CollectiveAttr Attr(const Mesh& mesh, const AxisList& axes);
  hlo::Computation* Combiner(Reduction reduction, DType dtype);

  Coordinates* coordinates_;
  hlo::Builder* builder_;
  int64_t* next_channel_;
};

}  // namespace gangway::partition
