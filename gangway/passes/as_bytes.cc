// Numbers of awkward types as bytes, or as numbers of a type that is less so.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/passes/passes.h"
#include "gangway/passes/replace_each.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Computation;
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

// Integers of two bits, of which XLA packs four into a byte: not in all that it compiles.
bool IsPair(DType dtype) { return BitWidth(dtype) == 2; }

DType ByteOf(DType pair) { return IsSigned(pair) ? DType::kS8 : DType::kU8; }

bool JoinPairs(Instruction* join, Builder& builder) {
  if (!IsPair(join->shape().dtype())) return false;
  return MoveAs(join, builder, ByteOf(join->shape().dtype()), Value);
}

// The plugin copies packed elements from one layout into another with a plan that aborts. The mask keeps the plugin
// from turning the packed elements after all.
bool TransposePacked(Instruction* transpose, Builder& builder) {
  const DType dtype = transpose->shape().dtype();
  if (BitWidth(dtype) >= 8 || dtype == DType::kPred) return false;
  const Shape shape = WithDType(WithoutLayout(transpose->shape()), IsFloat(dtype) ? DType::kF16 : ByteOf(dtype));
  builder.set_metadata(transpose->metadata());
  Instruction* wide = builder.Convert(transpose->operand(0), shape.dtype());
  Instruction* turned = builder.computation()->AddClone(*transpose, shape, {wide});
  Instruction* kept = builder.Add(Opcode::kOptBarrier, {turned}, {}, {}, shape);
  transpose->ReplaceAllUsesWith(builder.Convert(kept, dtype));
  return true;
}

Shape OfBytes(const Shape& shape) {
  if (shape.IsArray()) return IsPair(shape.dtype()) ? WithDType(WithoutLayout(shape), ByteOf(shape.dtype())) : shape;
  std::vector<Shape> elements;
  for (const Shape& element : shape.tuple()) elements.push_back(OfBytes(element));
  return Shape::Tuple(std::move(elements));
}

// Arrays, or a tuple of them, by value.
Instruction* Converted(Builder& builder, Instruction* x, const Shape& to) {
  if (to.IsArray()) return x->shape().dtype() == to.dtype() ? x : builder.Convert(x, to.dtype());
  std::vector<Instruction*> elements;
  for (size_t i = 0; i < to.tuple().size(); ++i) {
    Instruction* element = builder.GetTupleElement(x, static_cast<int64_t>(i));
    elements.push_back(Converted(builder, element, to.tuple()[i]));
  }
  return builder.Tuple(std::move(elements));
}

// The same function; what it takes and gives as pairs of bits is bytes.
Computation* OfBytes(Computation& function) {
  Computation* made = function.module()->AddComputation(absl::StrCat(function.name(), "_of_bytes"));
  Builder builder(made);
  std::vector<Instruction*> arguments;
  for (const Instruction* parameter : function.parameters()) {
    const auto number = static_cast<int64_t>(arguments.size());
    Instruction* byte = builder.Parameter(number, OfBytes(parameter->shape()), absl::StrCat("p", number));
    arguments.push_back(Converted(builder, byte, parameter->shape()));
  }
  Instruction* result = builder.Add(Opcode::kCall, std::move(arguments), {}, {&function});
  made->set_root(Converted(builder, result, OfBytes(result->shape())));
  return made;
}

// A sort, or a reduction of several arrays.
bool DoPairsAsBytes(Instruction* op, Builder& builder) {
  std::vector<Instruction*> operands = op->operands();
  const bool has_pairs =
      std::any_of(operands.begin(), operands.end(), [](const auto* x) { return IsPair(x->shape().dtype()); });
  if (!has_pairs || (op->opcode() == Opcode::kReduce && operands.size() == 2)) return false;
  builder.set_metadata(op->metadata());
  for (Instruction*& operand : operands) operand = Converted(builder, operand, OfBytes(operand->shape()));
  Instruction* done = builder.computation()->AddClone(*op, OfBytes(op->shape()), std::move(operands));
  done->set_called({OfBytes(*op->called()[0])});
  op->ReplaceAllUsesWith(Converted(builder, done, op->shape()));
  return true;
}

// The order of four-bit floats is that of the wider ones of the same value: they have no NaN, and zeros of both signs.
bool CompareWide(Instruction* compare, Builder& builder) {
  const auto& attr = compare->attr<hlo::CompareAttr>();
  if (compare->operand(0)->shape().dtype() != DType::kF4E2M1FN || !attr.IsTotalOrder()) return false;
  builder.set_metadata(compare->metadata());
  Instruction* x = builder.Convert(compare->operand(0), DType::kF16);
  Instruction* y = builder.Convert(compare->operand(1), DType::kF16);
  compare->ReplaceAllUsesWith(builder.Add(Opcode::kCompare, {x, y}, attr));
  return true;
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

absl::StatusOr<bool> RunPairsAsBytes(hlo::Module& module) {
  bool changed = ReplaceEach(module, Opcode::kConcatenate, JoinPairs);
  changed |= ReplaceEach(module, Opcode::kTranspose, TransposePacked);
  for (Opcode opcode : {Opcode::kSort, Opcode::kReduce}) changed |= ReplaceEach(module, opcode, DoPairsAsBytes);
  if (changed) module.SortComputations();
  return changed;
}

absl::StatusOr<bool> RunWidenTotalOrder(hlo::Module& module) {
  return ReplaceEach(module, Opcode::kCompare, CompareWide);
}

}  // namespace gangway::passes
