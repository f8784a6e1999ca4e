// The words for enumerated attributes, as text and protos write them. Internal to hlo/.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/hlo/attributes.h"

namespace gangway::hlo {

template <typename Enum>
struct NamedValue {
  Enum value;
  absl::string_view name;
};

// Every value of an enumeration with its name; the first one with a value is what is printed.
template <typename Enum>
absl::Span<const NamedValue<Enum>> NamesOf();

template <typename Enum>
absl::string_view NameOf(Enum value) {
  for (const NamedValue<Enum>& entry : NamesOf<Enum>()) {
    if (entry.value == value) return entry.name;
  }
  return "?";
}

template <typename Enum>
std::optional<Enum> ValueOf(absl::string_view name) {
  for (const NamedValue<Enum>& entry : NamesOf<Enum>()) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

template <>
absl::Span<const NamedValue<Precision>> NamesOf();
template <>
absl::Span<const NamedValue<ComparisonDirection>> NamesOf();
template <>
absl::Span<const NamedValue<ComparisonType>> NamesOf();
template <>
absl::Span<const NamedValue<CustomCallApi>> NamesOf();
template <>
absl::Span<const NamedValue<RngDistribution>> NamesOf();
template <>
absl::Span<const NamedValue<RngAlgorithm>> NamesOf();
template <>
absl::Span<const NamedValue<FftType>> NamesOf();
template <>
absl::Span<const NamedValue<Transposition>> NamesOf();

// xla.PrecisionConfig.Algorithm, "dot_bf16_bf16_f32" in text.
absl::Span<const NamedValue<int>> DotAlgorithmNames();

}  // namespace gangway::hlo
