#include "gangway/stablehlo/bytecode/field_reader.h"

#include "gangway/base/status.h"

namespace gangway::bytecode {

absl::StatusOr<AttributeId> FieldReader::AttributeRef() {
  GW_ASSIGN_OR_RETURN(uint64_t index, cursor_.Index(entries_.container().attributes.size(), "attribute"));
  return AttributeId(static_cast<uint32_t>(index));
}

absl::StatusOr<std::optional<AttributeId>> FieldReader::OptionalAttributeRef() {
  GW_ASSIGN_OR_RETURN(FlaggedVarint field, cursor_.Flagged());
  if (!field.flag) return std::optional<AttributeId>();
  if (field.value >= entries_.container().attributes.size()) {
    return cursor_.Error(absl::StrCat("attribute ", field.value, " does not exist"));
  }
  return std::optional<AttributeId>(AttributeId(static_cast<uint32_t>(field.value)));
}

absl::StatusOr<TypeId> FieldReader::TypeRef() {
  GW_ASSIGN_OR_RETURN(uint64_t index, cursor_.Index(entries_.container().types.size(), "type"));
  return TypeId(static_cast<uint32_t>(index));
}

absl::StatusOr<std::vector<AttributeId>> FieldReader::AttributeRefs() {
  GW_ASSIGN_OR_RETURN(size_t count, cursor_.Count("attributes"));
  std::vector<AttributeId> refs;
  refs.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    GW_ASSIGN_OR_RETURN(AttributeId ref, AttributeRef());
    refs.push_back(ref);
  }
  return refs;
}

absl::StatusOr<std::vector<TypeId>> FieldReader::TypeRefs() {
  GW_ASSIGN_OR_RETURN(size_t count, cursor_.Count("types"));
  std::vector<TypeId> refs;
  refs.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    GW_ASSIGN_OR_RETURN(TypeId ref, TypeRef());
    refs.push_back(ref);
  }
  return refs;
}

absl::StatusOr<absl::string_view> FieldReader::String() {
  const std::vector<absl::string_view>& strings = entries_.container().strings;
  GW_ASSIGN_OR_RETURN(uint64_t index, cursor_.Index(strings.size(), "string"));
  return strings[index];
}

absl::StatusOr<absl::string_view> FieldReader::StringAttribute() {
  GW_ASSIGN_OR_RETURN(AttributeId ref, AttributeRef());
  return entries_.string(ref);
}

absl::StatusOr<std::vector<absl::string_view>> FieldReader::StringAttributes() {
  GW_ASSIGN_OR_RETURN(std::vector<AttributeId> refs, AttributeRefs());
  std::vector<absl::string_view> texts;
  texts.reserve(refs.size());
  for (AttributeId ref : refs) {
    GW_ASSIGN_OR_RETURN(absl::string_view text, entries_.string(ref));
    texts.push_back(text);
  }
  return texts;
}

absl::StatusOr<std::vector<std::pair<absl::string_view, AttributeId>>> FieldReader::DictionaryEntries() {
  GW_ASSIGN_OR_RETURN(size_t count, cursor_.Count("dictionary entries", 2));
  std::vector<std::pair<absl::string_view, AttributeId>> result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    GW_ASSIGN_OR_RETURN(absl::string_view key, StringAttribute());
    GW_ASSIGN_OR_RETURN(AttributeId value, AttributeRef());
    result.emplace_back(key, value);
  }
  return result;
}

absl::StatusOr<IntegerAttr> FieldReader::Integer() {
  GW_ASSIGN_OR_RETURN(TypeId type, TypeRef());
  GW_ASSIGN_OR_RETURN(Scalar scalar, entries_.scalar(type));
  if (IsFloat(scalar)) return cursor_.Error(absl::StrCat("integer attribute of type ", ScalarName(scalar)));
  const int width = ScalarBits(scalar);
  GW_ASSIGN_OR_RETURN(uint64_t bits, cursor_.Bits(width));
  const bool is_signed = (scalar >= Scalar::kS2 && scalar <= Scalar::kS64) || scalar == Scalar::kIndex;
  if (is_signed && width < 64 && (bits >> (width - 1)) != 0) bits |= ~uint64_t{0} << width;
  return IntegerAttr{type, static_cast<int64_t>(bits)};
}

absl::StatusOr<FloatAttr> FieldReader::Float() {
  GW_ASSIGN_OR_RETURN(TypeId type, TypeRef());
  GW_ASSIGN_OR_RETURN(Scalar scalar, entries_.scalar(type));
  if (!IsFloat(scalar)) return cursor_.Error(absl::StrCat("float attribute of type ", ScalarName(scalar)));
  GW_ASSIGN_OR_RETURN(uint64_t bits, cursor_.Bits(ScalarBits(scalar)));
  return FloatAttr{type, bits};
}

}  // namespace gangway::bytecode
