// The custom calls that speak about shardings instead of computing.
#pragma once

#include "absl/strings/string_view.h"
#include "gangway/hlo/instruction.h"

namespace gangway::propagate {

inline absl::string_view CallTarget(const hlo::Instruction& instruction) {
  const auto* call = instruction.attr_if<hlo::CustomCallAttr>();
  return call == nullptr ? absl::string_view() : absl::string_view(call->target);
}

// From the global view of a value to the local one along manual axes.
inline bool IsToLocal(const hlo::Instruction& instruction) { return CallTarget(instruction) == "SPMDFullToShardShape"; }
inline bool IsToGlobal(const hlo::Instruction& instruction) {
  return CallTarget(instruction) == "SPMDShardToFullShape";
}
inline bool IsManualBoundary(const hlo::Instruction& instruction) {
  return IsToLocal(instruction) || IsToGlobal(instruction);
}

}  // namespace gangway::propagate
