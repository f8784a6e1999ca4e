// Values that are cheaper to make again under another sharding than to move: constants, iota, broadcasts.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "gangway/mesh/sharding.h"
#include "gangway/partition/value.h"

namespace gangway::partition {

class Context;

// Made without communication under any sharding: a splat constant, an iota, the broadcast of a scalar.
bool IsCheapToRemake(const LocalValue& value);

// The value of such an origin under `to`.
absl::StatusOr<hlo::Instruction*> Remake(Context* context, const LocalValue& value, const Sharding& to);

// How what a broadcast spreads must lie for its result to lie as `to`; nothing when the value is no broadcast.
std::optional<Sharding> BroadcastOperand(const LocalValue& value, const Sharding& to);

}  // namespace gangway::partition
