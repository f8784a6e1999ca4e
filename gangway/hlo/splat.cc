#include "gangway/hlo/splat.h"

namespace gangway::hlo {
namespace {

// No number that is not zero becomes zero.
bool KeepsNonzero(const Instruction& convert) {
  const DType from = convert.operand(0)->shape().dtype(), to = convert.shape().dtype();
  return IsFloat(to) && (!IsFloat(from) || BitWidth(to) >= BitWidth(from));
}

bool IsPositive(const Instruction* instruction) {
  const Literal* literal = SplatOf(instruction);
  return literal != nullptr && ElementAsDouble(literal->shape().dtype(), literal->data()) > 0;
}

}  // namespace

const Literal* SplatOf(const Instruction* instruction) {
  while (instruction->opcode() == Opcode::kBroadcast) instruction = instruction->operand(0);
  const auto* constant = instruction->attr_if<ConstantAttr>();
  return constant != nullptr && constant->literal->IsSplat() ? constant->literal.get() : nullptr;
}

bool IsSplat(const Instruction* instruction, double value) {
  const Literal* literal = SplatOf(instruction);
  if (literal == nullptr) return false;
  const DType dtype = literal->shape().dtype();
  return ElementAsDouble(dtype, literal->data()) == value && ImaginaryAsDouble(dtype, literal->data()) == 0;
}

bool IsNeverZero(const Instruction* instruction) {
  while (true) {
    switch (instruction->opcode()) {
      case Opcode::kBroadcast:
      case Opcode::kReshape:
      case Opcode::kTranspose:
      case Opcode::kSlice:
      case Opcode::kReverse:
      case Opcode::kCopy:
      case Opcode::kNegate:
        break;
      case Opcode::kConvert:
        if (!KeepsNonzero(*instruction)) return false;
        break;
      case Opcode::kMaximum:
        return IsPositive(instruction->operand(0)) || IsPositive(instruction->operand(1));
      default:
        return SplatOf(instruction) != nullptr && !IsSplat(instruction, 0);
    }
    instruction = instruction->operand(0);
  }
}

}  // namespace gangway::hlo
