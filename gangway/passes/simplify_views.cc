#include <algorithm>
#include <numeric>

#include "gangway/passes/simplify_rules.h"
#include "gangway/tensor/float_format.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;
using Simpler = std::optional<Instruction*>;

const DimVector& DimsOf(const Instruction* instruction) { return instruction->attr<hlo::DimensionsAttr>().dims; }

bool IsIota(const DimVector& dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool SameShape(const Instruction* a, const Instruction* b) { return Shape::Compatible(a->shape(), b->shape()); }

Simpler SameShapeIsOperand(Builder&, Instruction* i) {
  if (!SameShape(i, i->operand(0))) return std::nullopt;
  return i->operand(0);
}

Simpler ReshapeOfReshape(Builder& b, Instruction* i) {
  if (i->operand(0)->opcode() != Opcode::kReshape) return std::nullopt;
  return b.Reshape(i->operand(0)->operand(0), i->shape().dims());
}

Simpler TransposeIdentity(Builder&, Instruction* i) {
  if (!IsIota(DimsOf(i))) return std::nullopt;
  return i->operand(0);
}

Simpler TransposeOfTranspose(Builder& b, Instruction* i) {
  Instruction* inner = i->operand(0);
  if (inner->opcode() != Opcode::kTranspose) return std::nullopt;
  DimVector permutation;
  for (int64_t dim : DimsOf(i)) permutation.push_back(DimsOf(inner)[dim]);
  return b.Transpose(inner->operand(0), std::move(permutation));
}

// What only moves dimensions of one element leaves all others in their order.
Simpler TransposeOfOnes(Builder& b, Instruction* i) {
  int64_t last = -1;
  for (int64_t dim : DimsOf(i)) {
    if (i->operand(0)->shape().dim(dim) == 1) continue;
    if (dim < last) return std::nullopt;
    last = dim;
  }
  return b.Reshape(i->operand(0), i->shape().dims());
}

Simpler BroadcastIdentity(Builder&, Instruction* i) {
  if (!SameShape(i, i->operand(0)) || !IsIota(DimsOf(i))) return std::nullopt;
  return i->operand(0);
}

Simpler BroadcastOfBroadcast(Builder& b, Instruction* i) {
  Instruction* inner = i->operand(0);
  if (inner->opcode() != Opcode::kBroadcast) return std::nullopt;
  DimVector dims;
  for (int64_t dim : DimsOf(inner)) dims.push_back(DimsOf(i)[dim]);
  return b.Broadcast(inner->operand(0), i->shape(), std::move(dims));
}

// A scalar in whatever extents of one, seen through a reshape, is a scalar to a broadcast as well.
Simpler BroadcastOfScalarReshape(Builder& b, Instruction* i) {
  Instruction* inner = i->operand(0);
  if (inner->opcode() != Opcode::kReshape || inner->shape().ElementCount() != 1) return std::nullopt;
  if (inner->operand(0)->shape().rank() != 0) return std::nullopt;
  return b.BroadcastScalar(inner->operand(0), i->shape());
}

Simpler ReshapeOfScalarBroadcast(Builder& b, Instruction* i) {
  Instruction* inner = i->operand(0);
  if (inner->opcode() != Opcode::kBroadcast || inner->operand(0)->shape().rank() != 0) return std::nullopt;
  if (i->shape().rank() == 0) return inner->operand(0);
  return b.BroadcastScalar(inner->operand(0), i->shape());
}

Simpler TransposeOfScalarBroadcast(Builder& b, Instruction* i) {
  Instruction* inner = i->operand(0);
  if (inner->opcode() != Opcode::kBroadcast || inner->operand(0)->shape().rank() != 0) return std::nullopt;
  return b.BroadcastScalar(inner->operand(0), i->shape());
}

// Every value of `from` is one of `to`.
bool Widens(DType from, DType to) {
  if (IsFloat(from) && IsFloat(to)) {
    auto exponent = [](DType t) { return t == DType::kF32 ? 8 : t == DType::kF64 ? 11 : FormatOf(t).exponent_bits; };
    auto mantissa = [](DType t) { return t == DType::kF32 ? 23 : t == DType::kF64 ? 52 : FormatOf(t).mantissa_bits; };
    bool wide_enough = to == DType::kF32 || to == DType::kF64;  // the small formats differ in what they cannot hold
    return from == to || (wide_enough && exponent(from) <= exponent(to) && mantissa(from) <= mantissa(to));
  }
  if (IsInteger(from) && KindOf(from) == KindOf(to)) return BitWidth(from) <= BitWidth(to);
  return from == DType::kPred && (IsInteger(to) || IsFloat(to)) && BitWidth(to) > 1;
}

// A detour through a wider type changes nothing.
Simpler ConvertOfConvert(Builder& b, Instruction* i) {
  Instruction* inner = i->operand(0);
  if (inner->opcode() != Opcode::kConvert) return std::nullopt;
  Instruction* x = inner->operand(0);
  if (!Widens(x->shape().dtype(), inner->shape().dtype())) return std::nullopt;
  if (x->shape().dtype() == i->shape().dtype()) return x;
  if (KindOf(x->shape().dtype()) != KindOf(inner->shape().dtype())) return std::nullopt;
  return b.Convert(x, i->shape().dtype());
}

Simpler ElementOfTuple(Builder&, Instruction* i) {
  Instruction* tuple = i->operand(0);
  if (tuple->opcode() != Opcode::kTuple || tuple->has_sharding()) return std::nullopt;
  return tuple->operand(i->attr<hlo::TupleIndexAttr>().index);
}

// tuple(t.0, t.1, ...) of all elements is t.
Simpler TupleOfElements(Builder&, Instruction* i) {
  if (i->operand_count() == 0 || i->operand(0)->opcode() != Opcode::kGetTupleElement) return std::nullopt;
  Instruction* whole = i->operand(0)->operand(0);
  if (static_cast<int64_t>(whole->shape().tuple().size()) != i->operand_count()) return std::nullopt;
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    const Instruction* element = i->operand(k);
    if (element->opcode() != Opcode::kGetTupleElement || element->operand(0) != whole ||
        element->attr<hlo::TupleIndexAttr>().index != k) {
      return std::nullopt;
    }
  }
  return whole;
}

// Dimensions of one element have no direction.
Simpler ReverseOfOnes(Builder& b, Instruction* i) {
  DimVector dims;
  for (int64_t dim : DimsOf(i)) {
    if (i->shape().dim(dim) != 1) dims.push_back(dim);
  }
  if (dims.empty()) return i->operand(0);
  if (dims.size() == DimsOf(i).size()) return std::nullopt;
  return b.Add(Opcode::kReverse, {i->operand(0)}, hlo::DimensionsAttr{dims});
}

constexpr OpRule kRules[] = {
    {Opcode::kReshape, SameShapeIsOperand},
    {Opcode::kReshape, ReshapeOfReshape},
    {Opcode::kReshape, ReshapeOfScalarBroadcast},
    {Opcode::kTranspose, TransposeIdentity},
    {Opcode::kTranspose, TransposeOfTranspose},
    {Opcode::kTranspose, TransposeOfOnes},
    {Opcode::kTranspose, TransposeOfScalarBroadcast},
    {Opcode::kBroadcast, BroadcastIdentity},
    {Opcode::kBroadcast, BroadcastOfBroadcast},
    {Opcode::kBroadcast, BroadcastOfScalarReshape},
    {Opcode::kConvert, SameShapeIsOperand},
    {Opcode::kConvert, ConvertOfConvert},
    {Opcode::kBitcastConvert, SameShapeIsOperand},
    {Opcode::kCopy, SameShapeIsOperand},
    {Opcode::kGetTupleElement, ElementOfTuple},
    {Opcode::kTuple, TupleOfElements},
    {Opcode::kReverse, ReverseOfOnes},
};

}  // namespace

absl::Span<const OpRule> ViewRules() { return kRules; }

}  // namespace gangway::passes
