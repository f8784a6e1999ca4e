#include "gangway/tensor/literal.h"

#include <cmath>
#include <limits>

#include "gangway/base/check.h"
#include "gangway/tensor/float_format.h"

namespace gangway {
namespace {

template <typename T>
T Load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void Store(T value, char* to) {
  std::memcpy(to, &value, sizeof(T));
}

uint32_t LoadSmallBits(DType dtype, const char* from) {
  return ByteWidth(dtype) == 2 ? Load<uint16_t>(from) : Load<uint8_t>(from);
}

void StoreSmallBits(DType dtype, uint32_t bits, char* to) {
  if (ByteWidth(dtype) == 2) {
    Store(static_cast<uint16_t>(bits), to);
  } else {
    Store(static_cast<uint8_t>(bits), to);
  }
}

// The low `width` bits of `value` as a number of the type, in 64 bits.
int64_t Wrap(DType dtype, int64_t value) {
  int unused = 64 - BitWidth(dtype);
  uint64_t high = static_cast<uint64_t>(value) << unused;
  return IsSigned(dtype) ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
}

void StoreIntegerBits(DType dtype, int64_t value, char* to) {
  value = Wrap(dtype, value);
  std::memcpy(to, &value, ByteWidth(dtype));  // little endian
}

// As HLO's convert: toward zero, NaN gives 0, values outside give the nearest end.
int64_t TruncateToInteger(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  int width = BitWidth(dtype);
  if (IsUnsigned(dtype)) {
    if (value <= 0) return 0;
    if (value >= std::ldexp(1.0, width)) return Wrap(dtype, -1);
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  double limit = std::ldexp(1.0, width - 1);
  if (value >= limit) return static_cast<int64_t>((uint64_t{1} << (width - 1)) - 1);
  if (value < -limit) return -static_cast<int64_t>((uint64_t{1} << (width - 1)) - 1) - 1;
  return static_cast<int64_t>(value);
}

}  // namespace

Literal::Literal(Shape shape) : shape_(std::move(shape)) {
  if (shape_.IsTuple()) {
    for (const Shape& element : shape_.tuple()) elements_.emplace_back(element);
  } else {
    bytes_.resize(shape_.ByteSize());
  }
}

Literal::Literal(Shape shape, std::vector<char> bytes) : shape_(std::move(shape)), bytes_(std::move(bytes)) {
  GW_CHECK(static_cast<int64_t>(bytes_.size()) == shape_.ByteSize());
}

Literal Literal::Tuple(std::vector<Literal> elements) {
  Literal literal;
  std::vector<Shape> shapes;
  for (const Literal& element : elements) shapes.push_back(element.shape());
  literal.shape_ = Shape::Tuple(std::move(shapes));
  literal.elements_ = std::move(elements);
  return literal;
}

bool Literal::IsSplat() const {
  if (!shape_.IsArray() || bytes_.empty()) return false;
  size_t width = ByteWidth(shape_.dtype());
  return std::memcmp(bytes_.data(), bytes_.data() + width, bytes_.size() - width) == 0;
}

double ElementAsDouble(DType dtype, const char* element) {
  switch (dtype) {
    case DType::kF32:
    case DType::kC64:
      return Load<float>(element);
    case DType::kF64:
    case DType::kC128:
      return Load<double>(element);
    case DType::kU64:
      return static_cast<double>(Load<uint64_t>(element));
    default:
      if (IsFloat(dtype)) return DecodeFloat(FormatOf(dtype), LoadSmallBits(dtype, element));
      return static_cast<double>(ElementAsInt64(dtype, element));
  }
}

double ImaginaryAsDouble(DType dtype, const char* element) {
  if (dtype == DType::kC64) return Load<float>(element + sizeof(float));
  if (dtype == DType::kC128) return Load<double>(element + sizeof(double));
  return 0;
}

int64_t ElementAsInt64(DType dtype, const char* element) {
  switch (KindOf(dtype)) {
    case DTypeKind::kPred:
      return *element != 0;
    case DTypeKind::kSigned:
    case DTypeKind::kUnsigned: {
      int64_t value = 0;
      std::memcpy(&value, element, ByteWidth(dtype));  // little endian
      return Wrap(dtype, value);
    }
    case DTypeKind::kFloat:
    case DTypeKind::kComplex:
      return TruncateToInteger(DType::kS64, ElementAsDouble(dtype, element));
    case DTypeKind::kNone:
      return 0;
  }
  return 0;
}

void StoreDouble(DType dtype, double value, char* element) { StoreComplex(dtype, value, 0, element); }

void StoreComplex(DType dtype, double real, double imaginary, char* element) {
  switch (dtype) {
    case DType::kPred:
      return Store<uint8_t>(real != 0, element);
    case DType::kF32:
      return Store(static_cast<float>(real), element);
    case DType::kF64:
      return Store(real, element);
    case DType::kC64:
      Store(static_cast<float>(real), element);
      return Store(static_cast<float>(imaginary), element + sizeof(float));
    case DType::kC128:
      Store(real, element);
      return Store(imaginary, element + sizeof(double));
    default:
      if (IsFloat(dtype)) return StoreSmallBits(dtype, EncodeFloat(FormatOf(dtype), real), element);
      if (IsInteger(dtype)) return StoreIntegerBits(dtype, TruncateToInteger(dtype, real), element);
  }
}

void StoreInt64(DType dtype, int64_t value, char* element) {
  if (IsInteger(dtype)) return StoreIntegerBits(dtype, value, element);
  if (dtype == DType::kF32) return Store(static_cast<float>(value), element);  // one rounding, not two
  StoreDouble(dtype, static_cast<double>(value), element);
}

Literal SplatLiteral(const Shape& shape, double value) {
  Literal literal(shape);
  for (Literal& element : literal.elements()) element = SplatLiteral(element.shape(), value);
  if (!shape.IsArray()) return literal;
  size_t width = ByteWidth(shape.dtype());
  for (size_t i = 0; i < literal.bytes().size(); i += width) StoreDouble(shape.dtype(), value, literal.data() + i);
  return literal;
}

}  // namespace gangway
