// Values that are cheaper to make again under another sharding than to move: constants, iota, broadcasts, and what is
// computed from such values and from what every device has.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "gangway/hlo/instruction.h"
#include "gangway/mesh/sharding.h"
#include "gangway/partition/value.h"

namespace gangway::partition {

class Context;

// Made without communication under any sharding: a splat constant, an iota, the broadcast of a scalar.
bool IsCheapToRemake(const LocalValue& value);

// The value of such an origin under `to`.
absl::StatusOr<hlo::Instruction*> Remake(Context* context, const LocalValue& value, const Sharding& to);

// Operations that make the instruction's result from what every device has, itself counted; 0 when some device lacks
// something, or they are too many or of a kind that is better done once.
int StepsToRemake(const hlo::Instruction& instruction, const Context& context);

// How the operands of the value's origin must lie for its result to lie as `to` without anything else being moved;
// nothing when there is no such way. For broadcasts, and for what StepsToRemake counts.
std::optional<Shardings> OperandsToRemake(const LocalValue& value, const Sharding& to);

// The value under `to`, from operands brought to where OperandsToRemake says.
absl::StatusOr<hlo::Instruction*> RemakeFromOperands(Context* context, const LocalValue& value, const Sharding& to);

}  // namespace gangway::partition
