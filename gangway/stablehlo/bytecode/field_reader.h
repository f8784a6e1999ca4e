// FieldReader: reads the fields of one attribute or type entry; the dialects' decoders are written with it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/stablehlo/bytecode/cursor.h"
#include "gangway/stablehlo/bytecode/entries.h"

namespace gangway::bytecode {

class FieldReader {
 public:
  FieldReader(const Entries& entries, Cursor cursor) : entries_(entries), cursor_(cursor) {}

  Cursor& cursor() { return cursor_; }
  const Entries& entries() const { return entries_; }

  absl::StatusOr<AttributeId> AttributeRef();
  absl::StatusOr<std::optional<AttributeId>> OptionalAttributeRef();
  absl::StatusOr<TypeId> TypeRef();
  absl::StatusOr<std::vector<AttributeId>> AttributeRefs();
  absl::StatusOr<std::vector<TypeId>> TypeRefs();
  absl::StatusOr<absl::string_view> String();
  // A reference to a string attribute, resolved.
  absl::StatusOr<absl::string_view> StringAttribute();
  absl::StatusOr<std::vector<absl::string_view>> StringAttributes();
  absl::StatusOr<std::vector<std::pair<absl::string_view, AttributeId>>> DictionaryEntries();
  absl::StatusOr<IntegerAttr> Integer();
  absl::StatusOr<FloatAttr> Float();

 private:
  const Entries& entries_;
  Cursor cursor_;
};

// The dialects. `code` was read already; an unknown code gives OtherAttr or OtherType and leaves the rest unread.
absl::StatusOr<Attribute> DecodeBuiltinAttribute(uint64_t code, FieldReader& reader);
absl::StatusOr<Attribute> DecodeVhloAttribute(uint64_t code, FieldReader& reader);
absl::StatusOr<Attribute> DecodeSdyAttribute(uint64_t code, FieldReader& reader);
absl::StatusOr<Type> DecodeBuiltinType(uint64_t code, FieldReader& reader);
absl::StatusOr<Type> DecodeVhloType(uint64_t code, FieldReader& reader);
// MLIR assembly, e.g. "f8E4M3FN".
Type DecodeTypeText(absl::string_view text);

}  // namespace gangway::bytecode
