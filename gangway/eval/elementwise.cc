#include "gangway/eval/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/eval/elementwise_functions.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/wide.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;
using Operands = absl::Span<const Literal* const>;

absl::Status NotDefined(Opcode opcode, DType dtype) {
  return absl::UnimplementedError(absl::StrCat(hlo::OpcodeName(opcode), " is not defined on ", DTypeName(dtype)));
}

int BitsOf(DType dtype) { return dtype == DType::kPred ? 1 : BitWidth(dtype); }

// Widened elements, one operand of one element standing for all.
template <typename W>
class Lanes {
 public:
  explicit Lanes(const Literal& array) : values_(Widen<W>(array)), step_(values_.size() == 1 ? 0 : 1) {}
  W operator[](size_t i) const { return values_[i * step_]; }

 private:
  std::vector<W> values_;
  size_t step_;
};

template <typename W>
absl::StatusOr<Literal> Unary(Opcode opcode, Operands operands, const Shape& shape) {
  UnaryFunction<W> function = UnaryFor<W>(opcode);
  if (function == nullptr) return NotDefined(opcode, shape.dtype());
  Lanes<W> x(*operands[0]);
  int bits = BitsOf(shape.dtype());
  std::vector<W> result(shape.ElementCount());
  for (size_t i = 0; i < result.size(); ++i) result[i] = function(x[i], bits);
  return NarrowTo<W>(shape, result);
}

template <typename W>
absl::StatusOr<Literal> Binary(Opcode opcode, Operands operands, const Shape& shape) {
  BinaryFunction<W> function = BinaryFor<W>(opcode);
  if (function == nullptr) return NotDefined(opcode, shape.dtype());
  Lanes<W> x(*operands[0]), y(*operands[1]);
  int bits = BitsOf(shape.dtype());
  std::vector<W> result(shape.ElementCount());
  for (size_t i = 0; i < result.size(); ++i) result[i] = function(x[i], y[i], bits);
  return NarrowTo<W>(shape, result);
}

// Convert between kinds: see StoreDouble of literal.h for floats that become integers.
template <typename W>
void StoreElement(DType dtype, W value, char* to) {
  if constexpr (std::is_same_v<W, Complex>) {
    StoreComplex(dtype, value.real(), value.imag(), to);
  } else if constexpr (std::is_same_v<W, double>) {
    StoreDouble(dtype, value, to);
  } else if (std::is_same_v<W, uint64_t> && !IsInteger(dtype)) {
    if (dtype == DType::kF32) {
      float once = static_cast<float>(value);
      std::memcpy(to, &once, sizeof(once));
    } else {
      StoreDouble(dtype, static_cast<double>(value), to);
    }
  } else {
    StoreInt64(dtype, static_cast<int64_t>(value), to);
  }
}

Literal Convert(const Literal& x, const Shape& shape) {
  if (x.shape().dtype() == shape.dtype() && x.shape().dims() == shape.dims()) return x;
  return WithWideType(x.shape().dtype(), [&]<typename W>() {
    Lanes<W> values(x);
    Literal result(WithoutLayout(shape));
    int width = ByteWidth(shape.dtype());
    for (int64_t i = 0; i < shape.ElementCount(); ++i)
      StoreElement(shape.dtype(), values[i], result.data() + i * width);
    return result;
  });
}

template <typename W>
bool Compares(hlo::ComparisonDirection direction, W x, W y) {
  switch (direction) {
    case hlo::ComparisonDirection::kEq:
      return x == y;
    case hlo::ComparisonDirection::kNe:
      return x != y;
    default:
      break;
  }
  if constexpr (!std::is_same_v<W, Complex>) {
    switch (direction) {
      case hlo::ComparisonDirection::kGe:
        return x >= y;
      case hlo::ComparisonDirection::kGt:
        return x > y;
      case hlo::ComparisonDirection::kLe:
        return x <= y;
      case hlo::ComparisonDirection::kLt:
        return x < y;
      default:
        break;
    }
  }
  return false;
}

// Integers in IEEE's total order: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN. Bits decide, so that NaNs keep their
// sign.
std::vector<int64_t> TotalOrderKeys(const Literal& x) {
  int width = ByteWidth(x.shape().dtype()), bits = BitWidth(x.shape().dtype());
  std::vector<int64_t> keys(x.bytes().size() / width);
  for (size_t i = 0; i < keys.size(); ++i) {
    uint64_t code = 0;
    std::memcpy(&code, x.data() + i * width, width);
    uint64_t sign = uint64_t{1} << (bits - 1);
    keys[i] = (code & sign) != 0 ? -1 - static_cast<int64_t>(code & (sign - 1)) : static_cast<int64_t>(code);
  }
  return keys;
}

Literal CompareTotalOrder(hlo::ComparisonDirection direction, Operands operands, const Shape& shape) {
  std::vector<int64_t> x = TotalOrderKeys(*operands[0]), y = TotalOrderKeys(*operands[1]);
  size_t x_step = x.size() == 1 ? 0 : 1, y_step = y.size() == 1 ? 0 : 1;
  Literal result(WithoutLayout(shape));
  for (int64_t i = 0; i < shape.ElementCount(); ++i) {
    result.data()[i] = Compares(direction, x[i * x_step], y[i * y_step]);
  }
  return result;
}

Literal Compare(const hlo::CompareAttr& attr, Operands operands, const Shape& shape) {
  DType dtype = operands[0]->shape().dtype();
  if (attr.type == hlo::ComparisonType::kTotalOrder && IsFloat(dtype)) {
    return CompareTotalOrder(attr.direction, operands, shape);
  }
  return WithWideType(dtype, [&]<typename W>() {
    Lanes<W> x(*operands[0]), y(*operands[1]);
    Literal result(WithoutLayout(shape));
    for (int64_t i = 0; i < shape.ElementCount(); ++i) result.data()[i] = Compares<W>(attr.direction, x[i], y[i]);
    return result;
  });
}

// Copies bits, so that NaNs and padding of elements survive.
Literal Select(Operands operands, const Shape& shape) {
  const Literal &predicate = *operands[0], &on_true = *operands[1], &on_false = *operands[2];
  Literal result(WithoutLayout(shape));
  size_t width = ByteWidth(shape.dtype());
  auto step_of = [&](const Literal& array, size_t size) { return array.bytes().size() == size ? 0 : size; };
  size_t p_step = step_of(predicate, 1), t_step = step_of(on_true, width), f_step = step_of(on_false, width);
  for (int64_t i = 0; i < shape.ElementCount(); ++i) {
    const char* from = predicate.data()[i * p_step] != 0 ? on_true.data() + i * t_step : on_false.data() + i * f_step;
    std::memcpy(result.data() + i * width, from, width);
  }
  return result;
}

// minimum(maximum(x, low), high).
template <typename W>
absl::StatusOr<Literal> Clamp(Operands operands, const Shape& shape) {
  BinaryFunction<W> maximum = BinaryFor<W>(Opcode::kMaximum), minimum = BinaryFor<W>(Opcode::kMinimum);
  if (maximum == nullptr) return NotDefined(Opcode::kClamp, shape.dtype());
  Lanes<W> low(*operands[0]), x(*operands[1]), high(*operands[2]);
  std::vector<W> result(shape.ElementCount());
  for (size_t i = 0; i < result.size(); ++i) result[i] = minimum(maximum(x[i], low[i], 64), high[i], 64);
  return NarrowTo<W>(shape, result);
}

Literal IsFinite(const Literal& x, const Shape& shape) {
  Lanes<double> values(x);
  Literal result(WithoutLayout(shape));
  for (int64_t i = 0; i < shape.ElementCount(); ++i) result.data()[i] = std::isfinite(values[i]);
  return result;
}

Literal MakeComplex(Operands operands, const Shape& shape) {
  Lanes<double> real(*operands[0]), imaginary(*operands[1]);
  std::vector<Complex> result(shape.ElementCount());
  for (size_t i = 0; i < result.size(); ++i) result[i] = Complex(real[i], imaginary[i]);
  return NarrowTo<Complex>(shape, result);
}

// Real part, imaginary part or magnitude.
Literal PartOfComplex(Opcode opcode, const Literal& x, const Shape& shape) {
  Lanes<Complex> values(x);
  std::vector<double> result(shape.ElementCount());
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = opcode == Opcode::kReal   ? values[i].real()
                : opcode == Opcode::kImag ? values[i].imag()
                                          : std::abs(values[i]);
  }
  return NarrowTo<double>(shape, result);
}

// What is left of a float with fewer exponent and mantissa bits; what falls below its normal range becomes zero.
double ReducePrecision(double x, const hlo::ReducePrecisionAttr& attr, bool narrower_exponent) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  int exponent;
  std::frexp(x, &exponent);
  double unit = std::ldexp(1.0, exponent - 1 - attr.mantissa_bits);
  double rounded = unit == 0 ? x : std::nearbyint(x / unit) * unit;
  if (!narrower_exponent) return rounded;
  int bias = (1 << (attr.exponent_bits - 1)) - 1;
  if (std::fabs(rounded) >= std::ldexp(1.0, bias + 1)) return std::copysign(std::numeric_limits<double>::infinity(), x);
  if (std::fabs(rounded) < std::ldexp(1.0, 1 - bias)) return std::copysign(0.0, x);
  return rounded;
}

int ExponentBitsOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 5;
    case DType::kF64:
      return 11;
    default:
      return 8;
  }
}

Literal ReducePrecision(const hlo::ReducePrecisionAttr& attr, const Literal& x, const Shape& shape) {
  Lanes<double> values(x);
  std::vector<double> result(shape.ElementCount());
  bool narrower = attr.exponent_bits < ExponentBitsOf(shape.dtype());
  for (size_t i = 0; i < result.size(); ++i) result[i] = ReducePrecision(values[i], attr, narrower);
  return NarrowTo<double>(shape, result);
}

// Rounds away from zero when the random number is below the fraction cut off.
Literal StochasticConvert(Operands operands, const Shape& shape) {
  Lanes<double> x(*operands[0]);
  Lanes<uint64_t> random(*operands[1]);
  double scale = std::ldexp(1.0, BitWidth(operands[1]->shape().dtype()));
  Literal result(WithoutLayout(shape));
  int width = ByteWidth(shape.dtype());
  for (int64_t i = 0; i < shape.ElementCount(); ++i) {
    double truncated = std::trunc(x[i]), fraction = std::fabs(x[i] - truncated);
    if (static_cast<double>(random[i]) < fraction * scale) truncated += std::copysign(1.0, x[i]);
    StoreDouble(shape.dtype(), truncated, result.data() + i * width);
  }
  return result;
}

absl::StatusOr<Value> Elementwise(const Call& call) {
  std::vector<const Literal*> operands;
  for (const Value& operand : call.operands) operands.push_back(&operand.array());
  GW_ASSIGN_OR_RETURN(Literal result, EvaluateElementwise(call.instruction, operands, call.shape()));
  return Value(std::move(result));
}

absl::StatusOr<Value> Copy(const Call& call) { return call.operands[0]; }

}  // namespace

bool IsLiftable(Opcode opcode) { return hlo::IsElementwise(opcode) || opcode == Opcode::kClamp; }

absl::StatusOr<Literal> EvaluateElementwise(const hlo::Instruction& instruction, Operands operands,
                                            const Shape& shape) {
  Opcode opcode = instruction.opcode();
  DType dtype = operands[0]->shape().dtype();
  switch (opcode) {
    case Opcode::kConvert:
    case Opcode::kCopy:
      return Convert(*operands[0], shape);
    case Opcode::kCompare:
      return Compare(instruction.attr<hlo::CompareAttr>(), operands, shape);
    case Opcode::kSelect:
      return Select(operands, shape);
    case Opcode::kComplex:
      return MakeComplex(operands, shape);
    case Opcode::kReducePrecision:
      return ReducePrecision(instruction.attr<hlo::ReducePrecisionAttr>(), *operands[0], shape);
    case Opcode::kStochasticConvert:
      return StochasticConvert(operands, shape);
    case Opcode::kIsFinite:
      if (!IsFloat(dtype)) return NotDefined(opcode, dtype);
      return IsFinite(*operands[0], shape);
    case Opcode::kAbs:
    case Opcode::kReal:
    case Opcode::kImag:
      if (IsComplex(dtype)) return PartOfComplex(opcode, *operands[0], shape);
      if (opcode == Opcode::kReal) return Convert(*operands[0], shape);
      if (opcode == Opcode::kImag) return Literal(WithoutLayout(shape));
      break;
    default:
      break;
  }
  return WithWideType(dtype, [&]<typename W>() -> absl::StatusOr<Literal> {
    if (opcode == Opcode::kClamp) return Clamp<W>(operands, shape);
    if (operands.size() == 1) return Unary<W>(opcode, operands, shape);
    return Binary<W>(opcode, operands, shape);
  });
}

void AddElementwise(OpTable* table) {
  for (const hlo::OpcodeInfo& info : hlo::AllOpcodes()) {
    if (IsLiftable(info.opcode)) table->Set(info.opcode, Elementwise);
  }
  table->Set(Opcode::kCopy, Copy);
}

}  // namespace gangway::eval
