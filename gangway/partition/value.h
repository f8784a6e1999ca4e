// What a device holds of one array of the program.
#pragma once

#include <utility>
#include <vector>

#include "gangway/hlo/instruction.h"
#include "gangway/mesh/sharding.h"
#include "gangway/tensor/shape.h"

namespace gangway::partition {

// The source instruction that made a value, and which leaf of its result it is.
using ValueKey = std::pair<const hlo::Instruction*, int64_t>;

// One array (or token) of the source program as the per-device program has it. Shards of dimensions that do not divide
// are padded at their end with arbitrary data; whoever reads across such a dimension masks it first.
struct LocalValue {
  hlo::Instruction* local = nullptr;  // in the per-device program
  Sharding sharding;                  // how it lies; may hold partial results (unreduced), resolved where next needed
  Shape global;
  // The instruction of the source program that made it, where that has one result: cheap ones are made again under
  // another sharding rather than moved.
  const hlo::Instruction* origin = nullptr;
  ValueKey key = {nullptr, 0};  // given when the value is set; constraints and tuples pass it on
  // A part of a loop's state that no step changes, or made of such parts only: collectives of it leave the loop.
  bool unchanged = false;
};
using LocalValues = std::vector<LocalValue>;  // one per leaf of a shape, depth first

}  // namespace gangway::partition
