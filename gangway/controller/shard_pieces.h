// What the shards of an array are made of when it is split in another way, on whichever devices. Pure.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "gangway/controller/controller.h"

namespace gangway::controller {

// A box of the shard at position `from` of the one array is a box of the shard at position `to` of the other.
struct ShardPiece {
  int from = 0, to = 0;
  DimVector start;   // in the shard it comes from
  DimVector at;      // in the shard it goes to
  DimVector extent;  // of both, never empty

  friend bool operator==(const ShardPiece&, const ShardPiece&) = default;
};

// Pieces that cover every shard of `to`, padding left out, by the position they go to. Of several shards that hold the
// same the one of least `distance` is taken, of those the first. UNIMPLEMENTED where it is not known what the shards
// hold, or they hold partial sums or parts that only the program knows.
absl::StatusOr<std::vector<ShardPiece>> PlanPieces(const ArraySpec& from, const ArraySpec& to,
                                                   absl::FunctionRef<int(int from, int to)> distance);

// Whether it is known that at some position the shards of two arrays of one shape, on the same devices, hold different
// parts of it. Nothing is known of partial sums, nor where only the shards' shapes are.
bool HoldOtherParts(const ArraySpec& a, const ArraySpec& b);

}  // namespace gangway::controller
