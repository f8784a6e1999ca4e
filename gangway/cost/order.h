// Orders in which a device's compiler may put the operations of a computation.
#pragma once

#include <vector>

#include "gangway/hlo/module.h"

namespace gangway::cost {

using Order = std::vector<const hlo::Instruction*>;

enum class OrderKind {
  kAsWritten,
  kBreadthFirst,  // whatever is ready, first come, first served
  kDepthFirst,    // an operand with all it needs before the next, the operand of most readers and memory first
};

// All instructions, operands before their users. What is fused into its readers takes no turn of its own.
Order OrderOf(const hlo::Computation& computation, OrderKind kind);

}  // namespace gangway::cost
