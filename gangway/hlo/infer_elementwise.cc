// Shape inference of operations that work element by element.
#include <algorithm>

#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

// Sets of element kinds an operation accepts.
constexpr unsigned Bit(DTypeKind kind) { return 1u << static_cast<unsigned>(kind); }
constexpr unsigned kPredKind = Bit(DTypeKind::kPred);
constexpr unsigned kIntegers = Bit(DTypeKind::kSigned) | Bit(DTypeKind::kUnsigned);
constexpr unsigned kFloats = Bit(DTypeKind::kFloat);
constexpr unsigned kComplexes = Bit(DTypeKind::kComplex);
constexpr unsigned kNumbers = kIntegers | kFloats | kComplexes;
constexpr unsigned kAll = kNumbers | kPredKind;

absl::Status CheckKind(const Shape& shape, unsigned kinds) {
  if ((Bit(KindOf(shape.dtype())) & kinds) != 0) return absl::OkStatus();
  return Wrong("not defined for ", DTypeName(shape.dtype()));
}

template <unsigned kinds>
absl::StatusOr<Shape> Unary(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckKind(query.operand(0), kinds));
  return query.operand(0);
}

// Operand types are equal; `kinds` of the element.
template <unsigned kinds>
absl::StatusOr<Shape> Binary(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckKind(query.operand(0), kinds));
  if (!Shape::Compatible(query.operand(0), query.operand(1))) return Wrong("operand types differ");
  return query.operand(0);
}

// abs, real, imag: the real type of a complex one.
template <unsigned kinds>
absl::StatusOr<Shape> ToReal(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(Shape shape, Unary<kinds>(query));
  if (shape.dtype() == DType::kC64) shape.set_dtype(DType::kF32);
  if (shape.dtype() == DType::kC128) shape.set_dtype(DType::kF64);
  return shape;
}

absl::StatusOr<Shape> ToComplex(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(Shape shape, Binary<kFloats>(query));
  if (shape.dtype() == DType::kF32) return WithDType(shape, DType::kC64);
  if (shape.dtype() == DType::kF64) return WithDType(shape, DType::kC128);
  return Wrong("not defined for ", DTypeName(shape.dtype()));
}

absl::StatusOr<Shape> IsFinite(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(Shape shape, Unary<kFloats>(query));
  return WithDType(shape, DType::kPred);
}

absl::StatusOr<Shape> Compare(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(Shape shape, Binary<kAll>(query));
  GW_ASSIGN_OR_RETURN(const CompareAttr* attr, AttrOf<CompareAttr>(query));
  bool equality = attr->direction == ComparisonDirection::kEq || attr->direction == ComparisonDirection::kNe;
  if (IsComplex(shape.dtype()) && !equality) return Wrong("complex numbers have no order");
  return WithDType(shape, DType::kPred);
}

absl::StatusOr<Shape> Convert(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckWantedArray(query));
  if (IsComplex(query.operand(0).dtype()) && !IsComplex(query.wanted.dtype())) {
    return Wrong("a complex number does not convert to ", DTypeName(query.wanted.dtype()), "; take real first");
  }
  return WithDType(query.operand(0), query.wanted.dtype());
}

absl::StatusOr<Shape> StochasticConvert(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckWantedArray(query));
  if (!SameDims(query.operand(0), query.operand(1))) return Wrong("dimensions of value and random bits differ");
  if (!IsUnsigned(query.operand(1).dtype())) return Wrong("random bits must be unsigned");
  return WithDType(query.operand(0), query.wanted.dtype());
}

absl::StatusOr<Shape> ReducePrecision(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(const ReducePrecisionAttr* attr, AttrOf<ReducePrecisionAttr>(query));
  if (attr->exponent_bits < 1) return Wrong("exponent_bits ", attr->exponent_bits, " is below 1");
  if (attr->mantissa_bits < 0) return Wrong("mantissa_bits ", attr->mantissa_bits, " is negative");
  return Unary<kFloats>(query);
}

absl::StatusOr<Shape> Copy(const InferQuery& query) { return query.operand(0); }

absl::StatusOr<Shape> Select(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  if (query.operand(0).dtype() != DType::kPred) return Wrong("the predicate must be pred");
  if (!Shape::Compatible(query.operand(1), query.operand(2))) return Wrong("types of the two values differ");
  if (query.operand(0).rank() != 0 && !SameDims(query.operand(0), query.operand(1))) {
    return Wrong("the predicate must be a scalar or have the dimensions of the values");
  }
  return query.operand(1);
}

absl::StatusOr<Shape> Clamp(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  const Shape& value = query.operand(1);
  GW_RETURN_IF_ERROR(CheckKind(value, kAll & ~kComplexes));
  for (int64_t i : {0, 2}) {
    const Shape& bound = query.operand(i);
    if (bound.dtype() != value.dtype()) return Wrong("element types differ");
    if (bound.rank() != 0 && !SameDims(bound, value)) {
      return Wrong("operand ", i, " must be a scalar or have the dimensions of the value");
    }
  }
  return value;
}

constexpr unsigned kSignedNumbers = Bit(DTypeKind::kSigned) | kFloats | kComplexes;
constexpr unsigned kAnalytic = kFloats | kComplexes;
constexpr unsigned kBits = kIntegers | kPredKind;

constexpr InferRow kRows[] = {
    {Opcode::kAbs, ToReal<kSignedNumbers | kIntegers>},
    {Opcode::kAdd, Binary<kAll>},
    {Opcode::kAnd, Binary<kBits>},
    {Opcode::kAtan2, Binary<kAnalytic>},
    {Opcode::kCbrt, Unary<kAnalytic>},
    {Opcode::kCeil, Unary<kFloats>},
    {Opcode::kClamp, Clamp},
    {Opcode::kCompare, Compare},
    {Opcode::kComplex, ToComplex},
    {Opcode::kConvert, Convert},
    {Opcode::kCopy, Copy},
    {Opcode::kCosine, Unary<kAnalytic>},
    {Opcode::kCountLeadingZeros, Unary<kIntegers>},
    {Opcode::kDivide, Binary<kNumbers>},
    {Opcode::kErf, Unary<kFloats>},
    {Opcode::kExponential, Unary<kAnalytic>},
    {Opcode::kExponentialMinusOne, Unary<kAnalytic>},
    {Opcode::kFloor, Unary<kFloats>},
    {Opcode::kImag, ToReal<kAnalytic>},
    {Opcode::kIsFinite, IsFinite},
    {Opcode::kLog, Unary<kAnalytic>},
    {Opcode::kLogPlusOne, Unary<kAnalytic>},
    {Opcode::kLogistic, Unary<kAnalytic>},
    {Opcode::kMaximum, Binary<kAll>},
    {Opcode::kMinimum, Binary<kAll>},
    {Opcode::kMultiply, Binary<kAll>},
    {Opcode::kNegate, Unary<kNumbers>},
    {Opcode::kNot, Unary<kBits>},
    {Opcode::kOr, Binary<kBits>},
    {Opcode::kPopulationCount, Unary<kIntegers>},
    {Opcode::kPower, Binary<kNumbers>},
    {Opcode::kReal, ToReal<kAnalytic>},
    {Opcode::kReducePrecision, ReducePrecision},
    {Opcode::kRemainder, Binary<kNumbers>},
    {Opcode::kRoundNearestAfz, Unary<kFloats>},
    {Opcode::kRoundNearestEven, Unary<kFloats>},
    {Opcode::kRsqrt, Unary<kAnalytic>},
    {Opcode::kSelect, Select},
    {Opcode::kShiftLeft, Binary<kIntegers>},
    {Opcode::kShiftRightArithmetic, Binary<kIntegers>},
    {Opcode::kShiftRightLogical, Binary<kIntegers>},
    {Opcode::kSign, Unary<kSignedNumbers | kIntegers>},
    {Opcode::kSine, Unary<kAnalytic>},
    {Opcode::kSqrt, Unary<kAnalytic>},
    {Opcode::kStochasticConvert, StochasticConvert},
    {Opcode::kSubtract, Binary<kNumbers>},
    {Opcode::kTan, Unary<kAnalytic>},
    {Opcode::kTanh, Unary<kAnalytic>},
    {Opcode::kXor, Binary<kBits>},
};

}  // namespace

absl::Span<const InferRow> ElementwiseInferRows() { return kRows; }

}  // namespace gangway::hlo
