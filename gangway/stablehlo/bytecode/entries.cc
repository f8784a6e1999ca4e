#include "gangway/stablehlo/bytecode/entries.h"

#include <utility>

#include "gangway/base/status.h"
#include "gangway/stablehlo/bytecode/field_reader.h"

namespace gangway::bytecode {
namespace {

absl::StatusOr<absl::string_view> AssemblyText(Cursor cursor) {
  GW_ASSIGN_OR_RETURN(absl::string_view text, cursor.CString());
  GW_RETURN_IF_ERROR(cursor.ExpectDone("the assembly text"));
  return text;
}

std::string Abbreviate(absl::string_view text) {
  constexpr size_t kLongest = 60;
  return text.size() <= kLongest ? std::string(text) : absl::StrCat(text.substr(0, kLongest), "...");
}

absl::StatusOr<Attribute> DecodeAttribute(const Entries& entries, const Entry& entry) {
  if (!entry.custom) {
    GW_ASSIGN_OR_RETURN(absl::string_view text, AssemblyText(entry.cursor()));
    return Attribute(OtherAttr{Abbreviate(text)});
  }
  FieldReader reader(entries, entry.cursor());
  GW_ASSIGN_OR_RETURN(uint64_t code, reader.cursor().Varint());
  absl::StatusOr<Attribute> attribute = OtherAttr{absl::StrCat(Abbreviate(entry.dialect), " code ", code)};
  if (entry.dialect == "builtin") {
    attribute = DecodeBuiltinAttribute(code, reader);
  } else if (entry.dialect == "vhlo") {
    attribute = DecodeVhloAttribute(code, reader);
  } else if (entry.dialect == "sdy") {
    attribute = DecodeSdyAttribute(code, reader);
  }
  if (!attribute.ok()) return attribute;
  if (!std::holds_alternative<OtherAttr>(*attribute)) {
    GW_RETURN_IF_ERROR(reader.cursor().ExpectDone(AttributeKind(*attribute)));
  }
  return attribute;
}

// The one type of its own dialect that a portable artifact may hold: regions of sdy operations keep it, behind casts.
constexpr uint64_t kStablehloToken = 0;

absl::StatusOr<Type> DecodeType(const Entries& entries, const Entry& entry) {
  if (!entry.custom) {
    GW_ASSIGN_OR_RETURN(absl::string_view text, AssemblyText(entry.cursor()));
    return DecodeTypeText(text);
  }
  FieldReader reader(entries, entry.cursor());
  GW_ASSIGN_OR_RETURN(uint64_t code, reader.cursor().Varint());
  absl::StatusOr<Type> type = OtherType{absl::StrCat(Abbreviate(entry.dialect), " code ", code)};
  if (entry.dialect == "builtin") {
    type = DecodeBuiltinType(code, reader);
  } else if (entry.dialect == "vhlo") {
    type = DecodeVhloType(code, reader);
  } else if (entry.dialect == "stablehlo" && code == kStablehloToken) {
    type = TokenType{};
  }
  if (!type.ok()) return type;
  if (!std::holds_alternative<OtherType>(*type)) {
    GW_RETURN_IF_ERROR(reader.cursor().ExpectDone(TypeKind(*type)));
  }
  return type;
}

}  // namespace

Entries::Entries(const Container& container)
    : container_(container), attributes_(container.attributes.size()), types_(container.types.size()) {}

absl::StatusOr<const Attribute*> Entries::attribute(AttributeId id) const {
  if (id.value() >= attributes_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("attribute ", id.value(), " does not exist"));
  }
  if (attributes_[id.value()] == nullptr) {
    GW_ASSIGN_OR_RETURN_WITH(Attribute decoded, DecodeAttribute(*this, container_.attributes[id.value()]),
                             absl::StrCat("attribute entry ", id.value()));
    attributes_[id.value()] = std::make_unique<const Attribute>(std::move(decoded));
  }
  return attributes_[id.value()].get();
}

absl::StatusOr<const Type*> Entries::type(TypeId id) const {
  if (id.value() >= types_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("type ", id.value(), " does not exist"));
  }
  if (types_[id.value()] == nullptr) {
    GW_ASSIGN_OR_RETURN_WITH(Type decoded, DecodeType(*this, container_.types[id.value()]),
                             absl::StrCat("type entry ", id.value()));
    types_[id.value()] = std::make_unique<const Type>(std::move(decoded));
  }
  return types_[id.value()].get();
}

// Read straight from the entry, not through attribute(): this is called while an entry is decoded, and an entry that
// names itself must end in an error instead of a recursion.
absl::StatusOr<absl::string_view> Entries::string(AttributeId id) const {
  const Entry& entry = container_.attributes[id.value()];
  constexpr uint64_t kBuiltinString = 2;
  constexpr uint64_t kVhloString = 14;
  FieldReader reader(*this, entry.cursor());
  if (entry.custom) {
    GW_ASSIGN_OR_RETURN(uint64_t code, reader.cursor().Varint());
    if (code == (entry.dialect == "vhlo" ? kVhloString : kBuiltinString) && entry.dialect != "sdy") {
      GW_ASSIGN_OR_RETURN(absl::string_view text, reader.String());
      GW_RETURN_IF_ERROR(reader.cursor().ExpectDone("a string"));
      return text;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("byte ", entry.offset, ": attribute entry ", id.value(), " is not a string"));
}

absl::StatusOr<Scalar> Entries::scalar(TypeId id) const {
  GW_ASSIGN_OR_RETURN(const Type* found, type(id));
  if (const ScalarType* scalar = std::get_if<ScalarType>(found)) return scalar->scalar;
  return absl::InvalidArgumentError(absl::StrCat("expected a scalar type, found ", TypeKind(*found)));
}

}  // namespace gangway::bytecode
