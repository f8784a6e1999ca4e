// Halo exchange: every shard of a dimension gets a window of the whole dimension that moves with the shard's number.
#pragma once

#include <cstdint>
#include <vector>

#include "gangway/partition/context.h"

namespace gangway::partition {

// Element j of a result dimension of `results` elements needs positions base + j*stride ... + reach - 1, where element
// i of a dimension of `extent` elements lies at position i*dilation and other positions are holes. Both dimensions are
// in `shards` shards. Elements outside the dimension count as a fill value.
struct WindowRequest {
  int64_t extent = 0, results = 0, shards = 1;
  int64_t base = 0, stride = 1, reach = 1, dilation = 1;

  int64_t Positions() const;  // that one shard's results need
  int64_t Step() const;       // positions from a shard's first one to the next shard's
  int64_t FirstPosition(int64_t shard) const { return base + shard * Step(); }
  int64_t First(int64_t shard) const;                        // element, the first one of the shard's window
  int64_t Length() const;                                    // elements a shard's window has
  int64_t Holes(int64_t shard) const;                        // before its first element
  bool IsAligned() const { return Step() % dilation == 0; }  // every window has equally many holes before it
  friend bool operator==(const WindowRequest&, const WindowRequest&) = default;
};

// What each shard takes from shard k + shift: its elements begin .. end. Pieces follow each other without gaps.
struct WindowPiece {
  int64_t shift = 0;
  int64_t begin = 0, end = 0;
};

struct WindowPlan {
  WindowRequest request;
  std::vector<WindowPiece> pieces;  // by shift; empty when no shard needs anything
  bool reaches_out = false;         // some window has elements outside the dimension
  int64_t rows = 0;                 // elements along the dimension received from others
};

WindowPlan PlanWindow(const WindowRequest& request);

// The window of dimension `dim` of the local shard: Length() elements. `fill` (a scalar) stands for elements outside;
// null when the caller never uses those.
hlo::Instruction* EmitWindow(const WindowPlan& plan, hlo::Instruction* local, int64_t dim, const Sharding& sharding,
                             hlo::Instruction* fill, Context& context);

// The same with its holes, filled too: Positions() elements.
hlo::Instruction* EmitDilatedWindow(const WindowPlan& plan, hlo::Instruction* local, int64_t dim,
                                    const Sharding& sharding, hlo::Instruction* fill, Context& context);

// Dimension `dim` of the local shard from `starts[shard]` on, `size` elements.
hlo::Instruction* SliceFrom(hlo::Instruction* x, int64_t dim, const std::vector<int64_t>& starts, int64_t size,
                            const Sharding& sharding, Context& context);

// Bytes received per device, plus a charge per message, to get the window.
double WindowCost(const WindowPlan& plan, const Shape& global, const Sharding& sharding, int64_t dim);

}  // namespace gangway::partition
