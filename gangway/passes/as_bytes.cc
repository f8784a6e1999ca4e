// Operations that only move numbers of an awkward type move bytes instead.
#include <array>
#include <utility>
#include <vector>

#include "gangway/passes/passes.h"
#include "gangway/passes/replace_each.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

// `x` as another type: its bits, or its value.
using Cast = Instruction* (*)(Builder&, Instruction* x, DType to);

Instruction* Bits(Builder& builder, Instruction* x, DType to) {
  return builder.Add(Opcode::kBitcastConvert, {x}, {}, {}, WithDType(WithoutLayout(x->shape()), to));
}

Instruction* Value(Builder& builder, Instruction* x, DType to) { return builder.Convert(x, to); }

// The same movement of another type. Operands of other types, which say where to, stay.
bool MoveAs(Instruction* move, Builder& builder, DType as, Cast cast) {
  const DType dtype = move->shape().dtype();
  std::vector<Instruction*> operands = move->operands();
  for (Instruction*& operand : operands) {
    if (operand->shape().dtype() == dtype) operand = cast(builder, operand, as);
  }
  builder.set_metadata(move->metadata());
  const Shape shape = WithDType(WithoutLayout(move->shape()), as);
  Instruction* moved = builder.computation()->AddClone(*move, shape, std::move(operands));
  Instruction* result = cast(builder, moved, dtype);
  result->set_shardings(move->shardings());
  move->ReplaceAllUsesWith(result);
  return true;
}

bool MoveExponents(Instruction* move, Builder& builder) {
  if (!move->shape().IsArray() || move->shape().dtype() != DType::kF8E8M0FNU) return false;
  return MoveAs(move, builder, DType::kU8, Bits);
}

bool JoinPairsOfBits(Instruction* join, Builder& builder) {
  if (BitWidth(join->shape().dtype()) != 2) return false;
  return MoveAs(join, builder, IsSigned(join->shape().dtype()) ? DType::kS8 : DType::kU8, Value);
}

}  // namespace

absl::StatusOr<bool> RunExponentsAsBytes(hlo::Module& module) {
  constexpr std::array kMoves = {Opcode::kBroadcast, Opcode::kConcatenate,       Opcode::kDynamicSlice, Opcode::kGather,
                                 Opcode::kPad,       Opcode::kReshape,           Opcode::kReverse,      Opcode::kSlice,
                                 Opcode::kTranspose, Opcode::kDynamicUpdateSlice};
  bool changed = false;
  for (Opcode opcode : kMoves) changed |= ReplaceEach(module, opcode, MoveExponents);
  return changed;
}

absl::StatusOr<bool> RunJoinAsBytes(hlo::Module& module) {
  return ReplaceEach(module, Opcode::kConcatenate, JoinPairsOfBits);
}

}  // namespace gangway::passes
