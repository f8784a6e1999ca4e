#include "gangway/hlo/attribute_names.h"

namespace gangway::hlo {

template <>
absl::Span<const NamedValue<Precision>> NamesOf() {
  static constexpr NamedValue<Precision> kNames[] = {{Precision::kDefault, "default"},
                                                     {Precision::kHigh, "high"},
                                                     {Precision::kHighest, "highest"},
                                                     {Precision::kPackedNibble, "packed_nibble"}};
  return kNames;
}

template <>
absl::Span<const NamedValue<ComparisonDirection>> NamesOf() {
  using D = ComparisonDirection;
  static constexpr NamedValue<D> kNames[] = {{D::kEq, "EQ"}, {D::kNe, "NE"}, {D::kGe, "GE"},
                                             {D::kGt, "GT"}, {D::kLe, "LE"}, {D::kLt, "LT"}};
  return kNames;
}

template <>
absl::Span<const NamedValue<ComparisonType>> NamesOf() {
  using T = ComparisonType;
  static constexpr NamedValue<T> kNames[] = {{T::kDefault, ""},
                                             {T::kFloat, "FLOAT"},
                                             {T::kTotalOrder, "TOTALORDER"},
                                             {T::kSigned, "SIGNED"},
                                             {T::kUnsigned, "UNSIGNED"}};
  return kNames;
}

template <>
absl::Span<const NamedValue<CustomCallApi>> NamesOf() {
  using A = CustomCallApi;
  static constexpr NamedValue<A> kNames[] = {{A::kUnspecified, "API_VERSION_UNSPECIFIED"},
                                             {A::kOriginal, "API_VERSION_ORIGINAL"},
                                             {A::kStatusReturning, "API_VERSION_STATUS_RETURNING"},
                                             {A::kStatusReturningUnified, "API_VERSION_STATUS_RETURNING_UNIFIED"},
                                             {A::kTypedFfi, "API_VERSION_TYPED_FFI"}};
  return kNames;
}

template <>
absl::Span<const NamedValue<RngDistribution>> NamesOf() {
  static constexpr NamedValue<RngDistribution> kNames[] = {{RngDistribution::kInvalid, "rng_invalid"},
                                                           {RngDistribution::kUniform, "rng_uniform"},
                                                           {RngDistribution::kNormal, "rng_normal"}};
  return kNames;
}

template <>
absl::Span<const NamedValue<RngAlgorithm>> NamesOf() {
  static constexpr NamedValue<RngAlgorithm> kNames[] = {{RngAlgorithm::kDefault, "rng_default"},
                                                        {RngAlgorithm::kThreeFry, "rng_three_fry"},
                                                        {RngAlgorithm::kPhilox, "rng_philox"}};
  return kNames;
}

template <>
absl::Span<const NamedValue<FftType>> NamesOf() {
  static constexpr NamedValue<FftType> kNames[] = {
      {FftType::kFft, "FFT"}, {FftType::kIfft, "IFFT"}, {FftType::kRfft, "RFFT"}, {FftType::kIrfft, "IRFFT"}};
  return kNames;
}

template <>
absl::Span<const NamedValue<Transposition>> NamesOf() {
  using T = Transposition;
  static constexpr NamedValue<T> kNames[] = {{T::kInvalid, "TRANSPOSE_INVALID"},
                                             {T::kNone, "NO_TRANSPOSE"},
                                             {T::kTranspose, "TRANSPOSE"},
                                             {T::kAdjoint, "ADJOINT"}};
  return kNames;
}

absl::Span<const NamedValue<int>> DotAlgorithmNames() {
  static constexpr NamedValue<int> kNames[] = {{1, "dot_any_f8_any_f8_f32"}, {2, "dot_any_f8_any_f8_f32_fast_accum"},
                                               {3, "dot_f16_f16_f16"},       {4, "dot_f16_f16_f32"},
                                               {5, "dot_bf16_bf16_bf16"},    {6, "dot_bf16_bf16_f32"},
                                               {7, "dot_bf16_bf16_f32_x3"},  {8, "dot_bf16_bf16_f32_x6"},
                                               {9, "dot_tf32_tf32_f32"},     {10, "dot_tf32_tf32_f32_x3"},
                                               {11, "dot_f32_f32_f32"},      {12, "dot_f64_f64_f64"},
                                               {13, "dot_bf16_bf16_f32_x9"}, {14, "dot_bf16_bf16_fp8x3"},
                                               {15, "dot_bf16_bf16_fp8x4"}};
  return kNames;
}

}  // namespace gangway::hlo
