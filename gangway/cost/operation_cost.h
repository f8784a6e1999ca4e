// Arithmetic and memory traffic of one operation on one device.
#pragma once

#include "gangway/hlo/instruction.h"

namespace gangway::cost {

// Without what called computations of control flow cost.
struct OperationCost {
  double flops = 0;         // multiply and add count one each; an elementwise operation one an element
  double matmul_flops = 0;  // those of dot and convolution, contained in flops
  double bytes = 0;         // operands read and results written
};

OperationCost CostOf(const hlo::Instruction& instruction);

// Names a part of another value or reorders a tuple: costs nothing and takes no memory of its own.
bool IsAlias(hlo::Opcode opcode);

}  // namespace gangway::cost
