// Maxima and minima of floats along dimensions become those of integers in the same order, of which NaN is the outmost.
// A CPU's compiler that must not lose NaN takes floats one by one; integers it takes in vectors.
#include <optional>
#include <utility>

#include "gangway/passes/passes.h"
#include "gangway/passes/replace_each.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

std::optional<DType> IntegerOfWidth(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return DType::kS16;
    case DType::kF32:
      return DType::kS32;
    case DType::kF64:
      return DType::kS64;
    default:
      return std::nullopt;
  }
}

// maximum or minimum, when the reduction is one.
std::optional<Opcode> ExtremeOf(const Instruction& reduce) {
  const hlo::Computation& combiner = *reduce.called()[0];
  const Instruction& root = *combiner.root();
  if (reduce.operand_count() != 2 || combiner.size() != 3) return std::nullopt;
  if (root.opcode() != Opcode::kMaximum && root.opcode() != Opcode::kMinimum) return std::nullopt;
  return root.operand(0) != root.operand(1) ? std::optional(root.opcode()) : std::nullopt;
}

class IntegerOrder {
 public:
  IntegerOrder(Builder& builder, DType floats, DType integers)
      : builder_(builder), floats_(floats), integers_(integers), bits_(8 * ByteWidth(integers)) {}

  // NaN of either sign is `nan`.
  Instruction* Numbers(Instruction* x, int64_t nan) const {
    Instruction* not_a_number = builder_.Compare(hlo::ComparisonDirection::kNe, x, x);
    return builder_.Select(not_a_number, Splat(x->shape(), nan), Turned(Cast(x, integers_)));
  }
  Instruction* Floats(Instruction* numbers) const { return Cast(Turned(numbers), floats_); }

  int64_t Largest() const { return static_cast<int64_t>(~uint64_t{0} >> (65 - bits_)); }
  int64_t Least() const { return -Largest() - 1; }

 private:
  Instruction* Splat(const Shape& shape, int64_t value) const {
    Literal scalar(Shape(integers_, {}));
    StoreInt64(integers_, value, scalar.data());
    return builder_.BroadcastScalar(builder_.Constant(std::move(scalar)), Shape(integers_, shape.dims()));
  }
  Instruction* Cast(Instruction* x, DType dtype) const {
    return builder_.Add(Opcode::kBitcastConvert, {x}, {}, {}, Shape(dtype, x->shape().dims()));
  }
  // Floats lie as sign and magnitude: of negative ones the larger bits are the smaller number. Its own inverse.
  Instruction* Turned(Instruction* x) const {
    Instruction* sign = builder_.Binary(Opcode::kShiftRightArithmetic, x, Splat(x->shape(), bits_ - 1));
    Instruction* magnitude = builder_.Binary(Opcode::kAnd, sign, Splat(x->shape(), Largest()));
    return builder_.Binary(Opcode::kXor, x, magnitude);
  }

  Builder& builder_;
  const DType floats_, integers_;
  const int64_t bits_;
};

bool AsIntegers(Instruction* reduce, Builder& builder) {
  const std::optional<Opcode> extreme = ExtremeOf(*reduce);
  if (!extreme || !reduce->shape().IsArray()) return false;
  const DType floats = reduce->shape().dtype();
  const std::optional<DType> integers = IntegerOfWidth(floats);
  if (!integers) return false;
  builder.set_metadata(reduce->metadata());
  const IntegerOrder order(builder, floats, *integers);
  const int64_t nan = *extreme == Opcode::kMaximum ? order.Largest() : order.Least();
  Instruction* numbers = order.Numbers(reduce->operand(0), nan);
  Instruction* first = order.Numbers(reduce->operand(1), nan);
  Instruction* found = builder.Reduce(numbers, first, reduce->attr<hlo::DimensionsAttr>().dims,
                                      builder.ScalarComputation(*extreme, *integers));
  reduce->ReplaceAllUsesWith(order.Floats(found));
  return true;
}

}  // namespace

absl::StatusOr<bool> RunIntegerExtremes(hlo::Module& module) {
  const bool changed = ReplaceEach(module, Opcode::kReduce, AsIntegers);
  if (changed) module.SortComputations();
  return changed;
}

}  // namespace gangway::passes
