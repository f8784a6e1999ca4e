// The custom calls that speak about shardings instead of computing.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
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

// Values of one group are laid out alike.
inline bool IsShardingGroup(const hlo::Instruction& instruction) {
  return CallTarget(instruction) == "xla.sdy.ShardingGroup";
}
// Completion passes in some directions only: bit 0 forward, bit 1 backward.
inline bool IsBarrier(const hlo::Instruction& instruction) {
  return CallTarget(instruction) == "xla.sdy.PropagationBarrier";
}

// The number at the front of a frontend attribute ("7 : i64"), or `absent`.
inline int64_t FrontendNumber(const hlo::Instruction& instruction, const std::string& name, int64_t absent) {
  auto it = instruction.frontend_attributes().find(name);
  if (it == instruction.frontend_attributes().end()) return absent;
  const absl::string_view text = it->second;
  int64_t number = 0;
  return absl::SimpleAtoi(text.substr(0, text.find(' ')), &number) ? number : absent;
}

}  // namespace gangway::propagate
