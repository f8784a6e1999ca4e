// What the elements of a result along a dimension are, seen through the operations that only move them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gangway/hlo/instruction.h"
#include "gangway/partition/arrangement.h"

namespace gangway::partition {

// One dimension of a result as stretches of instructions' values. Operations on that dimension alone are looked
// through: slices, pads, concatenations, a reversal at the end.
struct ArrangedDim {
  struct Source {
    const hlo::Instruction* value = nullptr;  // an array, or a scalar that fills
    bool mirrored = false;
    // Of an elementwise operation on values that were looked through themselves: its array operands, arranged like it.
    // It can be computed in place instead of being moved.
    std::vector<ArrangedDim> operands;
  };
  int64_t extent = 0;
  std::vector<Source> sources;
  std::vector<Stretch> stretches;
};

// All users are moved elements themselves and look through it: nobody needs its value.
bool IsOnlyLookedThrough(const hlo::Instruction& slice);

ArrangedDim ArrangedAlong(const hlo::Instruction& concatenate, int64_t dim);

// Slices, pads and at last a reversal, on any dimensions, of one array: per dimension stretches of source 0, the array,
// and source 1, the value that fills.
struct ArrangedBox {
  const hlo::Instruction* base = nullptr;
  const hlo::Instruction* fill = nullptr;  // null where nothing is filled
  std::vector<std::vector<Stretch>> dims;
  std::vector<bool> mirrored;

  bool IsArranged(int64_t dim) const;  // not the base's dimension as it is
};

// Null when a stride or an interior padding makes it something else.
std::optional<ArrangedBox> BoxOf(const hlo::Instruction& instruction);

}  // namespace gangway::partition
