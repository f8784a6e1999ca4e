#include "gangway/eval/elementwise_functions.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace gangway::eval {
namespace {

using hlo::Opcode;

uint64_t Mask(int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

double Sign(double x) { return std::isnan(x) || x == 0 ? x : std::copysign(1.0, x); }

// NaN wins; of two zeros the positive one is the larger.
double Maximum(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}
double Minimum(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  if (x == y) return std::signbit(x) ? x : y;
  return x < y ? x : y;
}

uint64_t PowerOf(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

UnaryFunction<double> FloatUnary(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAbs:
      return [](double x, int) { return std::fabs(x); };
    case Opcode::kCbrt:
      return [](double x, int) { return std::cbrt(x); };
    case Opcode::kCeil:
      return [](double x, int) { return std::ceil(x); };
    case Opcode::kCosine:
      return [](double x, int) { return std::cos(x); };
    case Opcode::kErf:
      return [](double x, int) { return std::erf(x); };
    case Opcode::kExponential:
      return [](double x, int) { return std::exp(x); };
    case Opcode::kExponentialMinusOne:
      return [](double x, int) { return std::expm1(x); };
    case Opcode::kFloor:
      return [](double x, int) { return std::floor(x); };
    case Opcode::kLog:
      return [](double x, int) { return std::log(x); };
    case Opcode::kLogPlusOne:
      return [](double x, int) { return std::log1p(x); };
    case Opcode::kLogistic:
      return [](double x, int) { return 1 / (1 + std::exp(-x)); };
    case Opcode::kNegate:
      return [](double x, int) { return -x; };
    case Opcode::kRoundNearestAfz:
      return [](double x, int) { return std::round(x); };
    case Opcode::kRoundNearestEven:
      return [](double x, int) { return std::nearbyint(x); };
    case Opcode::kRsqrt:
      return [](double x, int) { return 1 / std::sqrt(x); };
    case Opcode::kSign:
      return [](double x, int) { return Sign(x); };
    case Opcode::kSine:
      return [](double x, int) { return std::sin(x); };
    case Opcode::kSqrt:
      return [](double x, int) { return std::sqrt(x); };
    case Opcode::kTan:
      return [](double x, int) { return std::tan(x); };
    case Opcode::kTanh:
      return [](double x, int) { return std::tanh(x); };
    default:
      return nullptr;
  }
}

BinaryFunction<double> FloatBinary(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
      return [](double x, double y, int) { return x + y; };
    case Opcode::kSubtract:
      return [](double x, double y, int) { return x - y; };
    case Opcode::kMultiply:
      return [](double x, double y, int) { return x * y; };
    case Opcode::kDivide:
      return [](double x, double y, int) { return x / y; };
    case Opcode::kRemainder:
      return [](double x, double y, int) { return std::fmod(x, y); };
    case Opcode::kMaximum:
      return [](double x, double y, int) { return Maximum(x, y); };
    case Opcode::kMinimum:
      return [](double x, double y, int) { return Minimum(x, y); };
    case Opcode::kPower:
      return [](double x, double y, int) { return std::pow(x, y); };
    case Opcode::kAtan2:
      return [](double x, double y, int) { return std::atan2(x, y); };
    default:
      return nullptr;
  }
}

Complex ExpMinusOne(Complex z) {
  double sine_half = std::sin(z.imag() / 2), grown = std::expm1(z.real());
  return {grown * std::cos(z.imag()) - 2 * sine_half * sine_half, (grown + 1) * std::sin(z.imag())};
}

// log|1+z| from (1+x)^2 + y^2 - 1 = x(2+x) + y^2, which keeps small z.
Complex LogPlusOne(Complex z) {
  double x = z.real(), y = z.imag();
  return {std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x)};
}

UnaryFunction<Complex> ComplexUnary(Opcode opcode) {
  switch (opcode) {
    case Opcode::kCbrt:
      return [](Complex x, int) { return std::pow(x, 1.0 / 3); };
    case Opcode::kCosine:
      return [](Complex x, int) { return std::cos(x); };
    case Opcode::kExponential:
      return [](Complex x, int) { return std::exp(x); };
    case Opcode::kExponentialMinusOne:
      return [](Complex x, int) { return ExpMinusOne(x); };
    case Opcode::kLog:
      return [](Complex x, int) { return std::log(x); };
    case Opcode::kLogPlusOne:
      return [](Complex x, int) { return LogPlusOne(x); };
    case Opcode::kLogistic:
      return [](Complex x, int) { return 1.0 / (1.0 + std::exp(-x)); };
    case Opcode::kNegate:
      return [](Complex x, int) { return -x; };
    case Opcode::kRsqrt:
      return [](Complex x, int) { return 1.0 / std::sqrt(x); };
    case Opcode::kSign:
      return [](Complex x, int) { return x == Complex(0) ? x : x / std::abs(x); };
    case Opcode::kSine:
      return [](Complex x, int) { return std::sin(x); };
    case Opcode::kSqrt:
      return [](Complex x, int) { return std::sqrt(x); };
    case Opcode::kTan:
      return [](Complex x, int) { return std::tan(x); };
    case Opcode::kTanh:
      return [](Complex x, int) { return std::tanh(x); };
    default:
      return nullptr;
  }
}

BinaryFunction<Complex> ComplexBinary(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
      return [](Complex x, Complex y, int) { return x + y; };
    case Opcode::kSubtract:
      return [](Complex x, Complex y, int) { return x - y; };
    case Opcode::kMultiply:
      return [](Complex x, Complex y, int) { return x * y; };
    case Opcode::kDivide:
      return [](Complex x, Complex y, int) { return x / y; };
    case Opcode::kPower:
      return [](Complex x, Complex y, int) { return x == Complex(0) ? Complex(y == Complex(0)) : std::pow(x, y); };
    default:
      return nullptr;
  }
}

template <typename W>
UnaryFunction<W> IntegerUnary(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAbs:
      return [](W x, int) { return x < 0 ? W(-static_cast<uint64_t>(x)) : x; };
    case Opcode::kNegate:
      return [](W x, int) { return W(-static_cast<uint64_t>(x)); };
    case Opcode::kSign:
      return [](W x, int) { return W(x > 0) - W(x < 0); };
    case Opcode::kNot:
      return [](W x, int bits) { return W(~static_cast<uint64_t>(x) & Mask(bits)); };
    case Opcode::kPopulationCount:
      return [](W x, int bits) { return W(std::popcount(static_cast<uint64_t>(x) & Mask(bits))); };
    case Opcode::kCountLeadingZeros:
      return [](W x, int bits) { return W(std::countl_zero(static_cast<uint64_t>(x) & Mask(bits)) - (64 - bits)); };
    default:
      return nullptr;
  }
}

// Division by zero gives all ones, its remainder the dividend; the most negative number divided by -1 is itself.
template <typename W>
W Quotient(W x, W y) {
  if (y == 0) return static_cast<W>(-1);
  if constexpr (std::is_signed_v<W>) {
    if (y == -1) return W(-static_cast<uint64_t>(x));
  }
  return x / y;
}
template <typename W>
W Remainder(W x, W y) {
  if (y == 0) return x;
  if constexpr (std::is_signed_v<W>) {
    if (y == -1) return 0;
  }
  return x % y;
}

template <typename W>
W IntegerPower(W x, W y) {
  if constexpr (std::is_signed_v<W>) {
    if (y < 0) {  // 1/x^|y|, rounded toward zero
      if (x == 1) return 1;
      if (x == -1) return (y & 1) != 0 ? -1 : 1;
      return 0;
    }
  }
  return static_cast<W>(PowerOf(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
}

template <typename W>
BinaryFunction<W> IntegerShift(Opcode opcode) {
  // Amounts are unsigned; from the width on everything is shifted out.
  switch (opcode) {
    case Opcode::kShiftLeft:
      return [](W x, W y, int bits) {
        uint64_t amount = static_cast<uint64_t>(y) & Mask(bits);
        return amount >= static_cast<uint64_t>(bits) ? W(0) : W(static_cast<uint64_t>(x) << amount);
      };
    case Opcode::kShiftRightLogical:
      return [](W x, W y, int bits) {
        uint64_t amount = static_cast<uint64_t>(y) & Mask(bits);
        return amount >= static_cast<uint64_t>(bits) ? W(0) : W((static_cast<uint64_t>(x) & Mask(bits)) >> amount);
      };
    case Opcode::kShiftRightArithmetic:
      return [](W x, W y, int bits) {
        int unused = 64 - bits;
        uint64_t amount = std::min<uint64_t>(static_cast<uint64_t>(y) & Mask(bits), 63 - unused);
        int64_t extended = static_cast<int64_t>(static_cast<uint64_t>(x) << unused) >> unused;
        return W(extended >> amount);
      };
    default:
      return nullptr;
  }
}

template <typename W>
BinaryFunction<W> IntegerBinary(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
      return [](W x, W y, int) { return W(static_cast<uint64_t>(x) + static_cast<uint64_t>(y)); };
    case Opcode::kSubtract:
      return [](W x, W y, int) { return W(static_cast<uint64_t>(x) - static_cast<uint64_t>(y)); };
    case Opcode::kMultiply:
      return [](W x, W y, int) { return W(static_cast<uint64_t>(x) * static_cast<uint64_t>(y)); };
    case Opcode::kDivide:
      return [](W x, W y, int) { return Quotient(x, y); };
    case Opcode::kRemainder:
      return [](W x, W y, int) { return Remainder(x, y); };
    case Opcode::kMaximum:
      return [](W x, W y, int) { return x > y ? x : y; };
    case Opcode::kMinimum:
      return [](W x, W y, int) { return x < y ? x : y; };
    case Opcode::kPower:
      return [](W x, W y, int) { return IntegerPower(x, y); };
    case Opcode::kAnd:
      return [](W x, W y, int) { return x & y; };
    case Opcode::kOr:
      return [](W x, W y, int) { return x | y; };
    case Opcode::kXor:
      return [](W x, W y, int) { return x ^ y; };
    default:
      return IntegerShift<W>(opcode);
  }
}

}  // namespace

template <>
UnaryFunction<double> UnaryFor<double>(Opcode opcode) {
  return FloatUnary(opcode);
}
template <>
UnaryFunction<Complex> UnaryFor<Complex>(Opcode opcode) {
  return ComplexUnary(opcode);
}
template <>
UnaryFunction<int64_t> UnaryFor<int64_t>(Opcode opcode) {
  return IntegerUnary<int64_t>(opcode);
}
template <>
UnaryFunction<uint64_t> UnaryFor<uint64_t>(Opcode opcode) {
  return IntegerUnary<uint64_t>(opcode);
}
template <>
BinaryFunction<double> BinaryFor<double>(Opcode opcode) {
  return FloatBinary(opcode);
}
template <>
BinaryFunction<Complex> BinaryFor<Complex>(Opcode opcode) {
  return ComplexBinary(opcode);
}
template <>
BinaryFunction<int64_t> BinaryFor<int64_t>(Opcode opcode) {
  return IntegerBinary<int64_t>(opcode);
}
template <>
BinaryFunction<uint64_t> BinaryFor<uint64_t>(Opcode opcode) {
  return IntegerBinary<uint64_t>(opcode);
}

}  // namespace gangway::eval
