// One move of an array on its way from one sharding to another.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "gangway/partition/digits.h"

namespace gangway::partition {

// A collective costs as much as this many bytes even when it moves next to nothing.
inline constexpr double kBytesPerCollective = 2048;

enum class StepKind : uint8_t {
  kSlice,          // local: keep the part of a digit that is the device's own
  kAllGather,      // digits become local
  kAllToAll,       // digits become local while others, local so far, are split by the same axes
  kPermute,        // the same tiles on other devices
  kExchange,       // all-to-all and permute in one: one permute for each piece of the tile
  kReduceScatter,  // partial sums added up, each device keeping a part
  kAllReduce,      // partial sums added up everywhere
  kMakePartial,    // local: all but the first device of the axes hold the identity
  kSpread,         // local: digits become whole, the identity in all other places: parts become partial sums
  kMove,           // the same tiles on the devices another mesh puts them on: one permute
};
absl::string_view StepName(StepKind kind);

// State before and after, in the digits of the stage.
struct ReshardStep {
  StepKind kind;
  Holders before, after;
  uint32_t unreduced_before = 0, unreduced_after = 0;  // bit per atom
  double bytes = 0;                                    // received per device
};

}  // namespace gangway::partition
