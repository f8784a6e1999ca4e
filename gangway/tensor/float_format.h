// The floating-point formats below 32 bits: their bits, and conversion from and to double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "gangway/tensor/dtype.h"

namespace gangway {

// What a format does with values it cannot hold.
enum class NonFinite : uint8_t {
  kIeee,      // infinities and NaNs as IEEE 754: the largest exponent
  kFn,        // no infinities; all ones below the sign is NaN; overflow is NaN
  kFnuz,      // no infinities, no negative zero; the bits of negative zero are NaN; overflow is NaN
  kNone,      // neither: overflow saturates, NaN becomes a zero of the opposite sign
  kExponent,  // f8e8m0fnu: only a power of two, no sign, no zero; all ones is NaN
};

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  NonFinite non_finite;

  constexpr int bits() const { return (non_finite == NonFinite::kExponent ? 0 : 1) + exponent_bits + mantissa_bits; }
  constexpr uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }  // kIeee
  // Bits of the largest finite value.
  constexpr uint32_t largest() const {
    switch (non_finite) {
      case NonFinite::kIeee:
        return infinity() - 1;
      case NonFinite::kFn:
      case NonFinite::kExponent:
        return sign_bit() - 2;
      default:
        return sign_bit() - 1;
    }
  }
  constexpr uint32_t quiet_nan() const {
    switch (non_finite) {
      case NonFinite::kIeee:
        return infinity() | (1u << (mantissa_bits - 1));
      case NonFinite::kFn:
      case NonFinite::kExponent:
        return sign_bit() - 1;
      default:
        return sign_bit();
    }
  }
};

// Of floating-point types below 32 bits; {} of any other.
constexpr FloatFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {5, 10, 15, NonFinite::kIeee};
    case DType::kBF16:
      return {8, 7, 127, NonFinite::kIeee};
    case DType::kF8E5M2:
      return {5, 2, 15, NonFinite::kIeee};
    case DType::kF8E4M3:
      return {4, 3, 7, NonFinite::kIeee};
    case DType::kF8E3M4:
      return {3, 4, 3, NonFinite::kIeee};
    case DType::kF8E4M3FN:
      return {4, 3, 7, NonFinite::kFn};
    case DType::kF8E4M3B11FNUZ:
      return {4, 3, 11, NonFinite::kFnuz};
    case DType::kF8E4M3FNUZ:
      return {4, 3, 8, NonFinite::kFnuz};
    case DType::kF8E5M2FNUZ:
      return {5, 2, 16, NonFinite::kFnuz};
    case DType::kF4E2M1FN:
      return {2, 1, 1, NonFinite::kNone};
    case DType::kF6E3M2FN:
      return {3, 2, 3, NonFinite::kNone};
    case DType::kF6E2M3FN:
      return {2, 3, 1, NonFinite::kNone};
    case DType::kF8E8M0FNU:
      return {8, 0, 127, NonFinite::kExponent};
    default:
      return {};
  }
}

namespace internal {

inline double PowerOfTwo(int exponent) {  // normal range only
  uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline int ExponentOf(double value) {  // floor(log2(|value|)) of a normal number; -1023 of zero and subnormals
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<int>((bits >> 52) & 0x7ff) - 1023;
}

inline bool IsNan(const FloatFormat& format, uint32_t bits) {
  uint32_t magnitude = bits & (format.sign_bit() - 1);
  switch (format.non_finite) {
    case NonFinite::kIeee:
      return magnitude > format.infinity();
    case NonFinite::kFn:
    case NonFinite::kExponent:
      return magnitude == format.sign_bit() - 1;
    case NonFinite::kFnuz:
      return bits == format.sign_bit();
    default:
      return false;
  }
}

}  // namespace internal

// The exact value of the low format.bits() bits.
inline double DecodeFloat(const FloatFormat& format, uint32_t bits) {
  bits &= (format.sign_bit() << 1) - 1;
  if (internal::IsNan(format, bits)) return std::numeric_limits<double>::quiet_NaN();
  uint32_t magnitude = bits & (format.sign_bit() - 1);
  if (format.non_finite == NonFinite::kExponent) return internal::PowerOfTwo(static_cast<int>(magnitude) - format.bias);
  double value;
  if (format.non_finite == NonFinite::kIeee && magnitude == format.infinity()) {
    value = std::numeric_limits<double>::infinity();
  } else if (int exponent = static_cast<int>(magnitude >> format.mantissa_bits); exponent == 0) {
    value = magnitude * internal::PowerOfTwo(1 - format.bias - format.mantissa_bits);
  } else {
    uint64_t wide =
        (static_cast<uint64_t>(exponent - format.bias + 1023) << 52) |
        (static_cast<uint64_t>(magnitude & ((1u << format.mantissa_bits) - 1)) << (52 - format.mantissa_bits));
    std::memcpy(&value, &wide, sizeof(value));
  }
  return (bits & format.sign_bit()) != 0 ? -value : value;
}

// Rounds to nearest, ties to even; see NonFinite for what lies outside.
inline uint32_t EncodeFloat(const FloatFormat& format, double value) {
  bool negative = std::signbit(value);
  uint32_t sign = negative ? format.sign_bit() : 0;
  bool keeps_sign = format.non_finite == NonFinite::kIeee || format.non_finite == NonFinite::kFn;
  if (std::isnan(value)) {
    if (format.non_finite == NonFinite::kNone && negative) return 0;
    return format.quiet_nan() | (keeps_sign ? sign : 0);
  }
  double magnitude = std::fabs(value);
  int least = 1 - format.bias;  // exponent of the smallest normal number
  if (format.non_finite == NonFinite::kExponent) {
    if (negative || value == 0) return format.quiet_nan();
    least = -format.bias;
  }
  int exponent = std::max(internal::ExponentOf(magnitude), least);
  uint32_t bits = format.largest() + 1;
  if (exponent <= (1 << format.exponent_bits) - format.bias) {
    // In units of the last place the value is below 2^(mantissa_bits + 1): adding 2^52 rounds it to an integer. A carry
    // into the exponent is the right result.
    double units = magnitude * internal::PowerOfTwo(format.mantissa_bits - exponent);
    units = (units + 0x1p52) - 0x1p52;
    bits = (static_cast<uint32_t>(exponent - least) << format.mantissa_bits) + static_cast<uint32_t>(units);
    if (format.non_finite == NonFinite::kExponent) bits -= units > 0 ? 1 : 0;
  }
  if (bits > format.largest()) {
    switch (format.non_finite) {
      case NonFinite::kIeee:
        return format.infinity() | sign;
      case NonFinite::kNone:
        return format.largest() | sign;
      default:
        return format.quiet_nan() | (keeps_sign ? sign : 0);
    }
  }
  if (format.non_finite == NonFinite::kFnuz && bits == 0) return 0;
  return bits | sign;
}

}  // namespace gangway
