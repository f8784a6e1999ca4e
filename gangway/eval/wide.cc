#include "gangway/eval/wide.h"

#include <type_traits>

#include "gangway/tensor/float_format.h"

namespace gangway::eval {
namespace {

template <typename W, typename T>
std::vector<W> Copied(const Literal& array) {
  absl::Span<const T> values = array.values<T>();
  return std::vector<W>(values.begin(), values.end());
}

template <typename T>
std::vector<double> Decoded(const Literal& array) {
  FloatFormat format = FormatOf(array.shape().dtype());
  absl::Span<const T> codes = array.values<T>();
  std::vector<double> wide(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) wide[i] = DecodeFloat(format, codes[i]);
  return wide;
}

// Sub-byte integers hold their value in one byte; the bits above it are not trusted.
template <typename W>
std::vector<W> ThroughInt64(const Literal& array) {
  std::vector<W> wide(array.bytes().size());
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = ElementAsInt64(array.shape().dtype(), array.data() + i);
  return wide;
}

template <typename T, typename W>
void CastInto(absl::Span<const W> values, char* out) {
  for (size_t i = 0; i < values.size(); ++i) {
    T narrow = static_cast<T>(values[i]);
    std::memcpy(out + i * sizeof(T), &narrow, sizeof(T));
  }
}

template <typename T>
void EncodeInto(DType dtype, absl::Span<const double> values, char* out) {
  FloatFormat format = FormatOf(dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    T code = static_cast<T>(EncodeFloat(format, values[i]));
    std::memcpy(out + i * sizeof(T), &code, sizeof(T));
  }
}

template <typename W>
void NarrowIntegers(DType dtype, absl::Span<const W> values, char* out) {
  switch (BitWidth(dtype)) {
    case 8:
      if (dtype == DType::kPred) {
        for (size_t i = 0; i < values.size(); ++i) out[i] = values[i] != 0;
        return;
      }
      return CastInto<uint8_t>(values, out);
    case 16:
      return CastInto<uint16_t>(values, out);
    case 32:
      return CastInto<uint32_t>(values, out);
    case 64:
      return CastInto<uint64_t>(values, out);
    default:
      for (size_t i = 0; i < values.size(); ++i) StoreInt64(dtype, static_cast<int64_t>(values[i]), out + i);
  }
}

}  // namespace

template <>
std::vector<double> Widen<double>(const Literal& array) {
  switch (array.shape().dtype()) {
    case DType::kF32:
      return Copied<double, float>(array);
    case DType::kF64:
      return Copied<double, double>(array);
    default:
      return ByteWidth(array.shape().dtype()) == 2 ? Decoded<uint16_t>(array) : Decoded<uint8_t>(array);
  }
}

template <>
std::vector<Complex> Widen<Complex>(const Literal& array) {
  if (array.shape().dtype() == DType::kC64) return Copied<Complex, std::complex<float>>(array);
  return Copied<Complex, Complex>(array);
}

template <>
std::vector<int64_t> Widen<int64_t>(const Literal& array) {
  switch (BitWidth(array.shape().dtype())) {
    case 8:
      return Copied<int64_t, int8_t>(array);
    case 16:
      return Copied<int64_t, int16_t>(array);
    case 32:
      return Copied<int64_t, int32_t>(array);
    case 64:
      return Copied<int64_t, int64_t>(array);
    default:
      return ThroughInt64<int64_t>(array);
  }
}

template <>
std::vector<uint64_t> Widen<uint64_t>(const Literal& array) {
  if (array.shape().dtype() == DType::kPred) return ThroughInt64<uint64_t>(array);
  switch (BitWidth(array.shape().dtype())) {
    case 8:
      return Copied<uint64_t, uint8_t>(array);
    case 16:
      return Copied<uint64_t, uint16_t>(array);
    case 32:
      return Copied<uint64_t, uint32_t>(array);
    case 64:
      return Copied<uint64_t, uint64_t>(array);
    default:
      return ThroughInt64<uint64_t>(array);
  }
}

template <>
void Narrow<double>(DType dtype, absl::Span<const double> values, char* out) {
  switch (dtype) {
    case DType::kF32:
      return CastInto<float>(values, out);
    case DType::kF64:
      return CastInto<double>(values, out);
    default:
      return ByteWidth(dtype) == 2 ? EncodeInto<uint16_t>(dtype, values, out) : EncodeInto<uint8_t>(dtype, values, out);
  }
}

template <>
void Narrow<Complex>(DType dtype, absl::Span<const Complex> values, char* out) {
  if (dtype == DType::kC64) return CastInto<std::complex<float>>(values, out);
  CastInto<Complex>(values, out);
}

template <>
void Narrow<int64_t>(DType dtype, absl::Span<const int64_t> values, char* out) {
  NarrowIntegers(dtype, values, out);
}

template <>
void Narrow<uint64_t>(DType dtype, absl::Span<const uint64_t> values, char* out) {
  NarrowIntegers(dtype, values, out);
}

}  // namespace gangway::eval
