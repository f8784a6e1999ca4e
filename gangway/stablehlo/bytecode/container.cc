#include "gangway/stablehlo/bytecode/container.h"

#include <array>
#include <utility>

#include "gangway/base/status.h"

namespace gangway::bytecode {
namespace {

constexpr absl::string_view kMagic("ML\xEFR", 4);

// The file's sections by id, and what is needed to read them.
using Sections = std::array<std::optional<Cursor>, kSectionCount>;

absl::StatusOr<Sections> ReadSections(Cursor& cursor) {
  Sections sections;
  while (!cursor.done()) {
    const size_t start = cursor.offset();
    GW_ASSIGN_OR_RETURN(Section section, ReadSection(cursor));
    std::optional<Cursor>& slot = sections[static_cast<size_t>(section.id)];
    if (slot.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("byte ", start, ": section ", static_cast<int>(section.id), " appears twice"));
    }
    slot = section.body;
  }
  return sections;
}

absl::Status ReadStrings(Cursor cursor, Container& file) {
  GW_ASSIGN_OR_RETURN(size_t count, cursor.Count("strings"));
  std::vector<uint64_t> sizes(count);
  // Sizes come last string first.
  for (size_t i = count; i-- > 0;) {
    GW_ASSIGN_OR_RETURN(sizes[i], cursor.Varint());
    if (sizes[i] == 0) return cursor.Error("string without a terminating NUL");
  }
  file.strings.reserve(count);
  for (uint64_t size : sizes) {
    GW_ASSIGN_OR_RETURN(absl::string_view text, cursor.Bytes(size));
    if (text.back() != '\0') return cursor.Error("string without a terminating NUL");
    file.strings.push_back(text.substr(0, text.size() - 1));
  }
  return cursor.ExpectDone("the strings");
}

absl::Status ReadDialectNames(Cursor& cursor, Container& file) {
  GW_ASSIGN_OR_RETURN(size_t count, cursor.Count("dialects"));
  file.dialects.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    GW_ASSIGN_OR_RETURN(uint64_t value, cursor.Varint());
    bool has_version = false;
    if (file.version >= 1) {
      has_version = (value & 1) != 0;
      value >>= 1;
    }
    if (value >= file.strings.size()) return cursor.Error(absl::StrCat("dialect name is string ", value));
    file.dialects.push_back(file.strings[value]);
    if (!has_version) continue;
    GW_ASSIGN_OR_RETURN(Section version, ReadSection(cursor));
    if (version.id != SectionId::kDialectVersions) return cursor.Error("expected a dialect version section");
  }
  return absl::OkStatus();
}

absl::Status ReadDialects(Cursor cursor, Container& file) {
  GW_RETURN_IF_ERROR(ReadDialectNames(cursor, file));
  if (file.version >= 4) {
    GW_ASSIGN_OR_RETURN(size_t total, cursor.Count("op names"));
    file.op_names.reserve(total);
  }
  while (!cursor.done()) {
    GW_ASSIGN_OR_RETURN(uint64_t dialect, cursor.Index(file.dialects.size(), "dialect"));
    GW_ASSIGN_OR_RETURN(size_t count, cursor.Count("op names"));
    for (size_t i = 0; i < count; ++i) {
      GW_ASSIGN_OR_RETURN(uint64_t value, cursor.Varint());
      OpName name;
      if (file.version >= 5) {
        name.registered = (value & 1) != 0;
        value >>= 1;
      }
      if (value >= file.strings.size()) return cursor.Error(absl::StrCat("op name is string ", value));
      name.dialect = file.dialects[dialect];
      name.name = file.strings[value];
      file.op_names.push_back(name);
    }
  }
  return absl::OkStatus();
}

// Reads `count` entries in groups of one dialect; their bytes are consecutive slices of `data`.
absl::Status ReadEntries(size_t count, const Container& file, Cursor& offsets, Cursor& data,
                         std::vector<Entry>& entries) {
  entries.reserve(count);
  while (entries.size() < count) {
    GW_ASSIGN_OR_RETURN(uint64_t dialect, offsets.Index(file.dialects.size(), "dialect"));
    GW_ASSIGN_OR_RETURN(size_t group, offsets.Count("entries"));
    if (group > count - entries.size()) return offsets.Error("more entries in the groups than announced");
    for (size_t i = 0; i < group; ++i) {
      GW_ASSIGN_OR_RETURN(FlaggedVarint size, offsets.Flagged());
      Entry entry;
      entry.dialect = file.dialects[dialect];
      entry.offset = data.offset();
      entry.custom = size.flag;
      GW_ASSIGN_OR_RETURN(entry.bytes, data.Bytes(size.value));
      entries.push_back(entry);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadAttributesAndTypes(Cursor offsets, Cursor data, Container& file) {
  GW_ASSIGN_OR_RETURN(size_t attributes, offsets.Count("attributes"));
  GW_ASSIGN_OR_RETURN(size_t types, offsets.Count("types"));
  GW_RETURN_IF_ERROR(ReadEntries(attributes, file, offsets, data, file.attributes));
  GW_RETURN_IF_ERROR(ReadEntries(types, file, offsets, data, file.types));
  GW_RETURN_IF_ERROR(offsets.ExpectDone("the attribute offsets"));
  return data.ExpectDone("the attributes");
}

absl::Status ReadProperties(Cursor cursor, Container& file) {
  GW_ASSIGN_OR_RETURN(size_t count, cursor.Count("properties"));
  file.properties.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    GW_ASSIGN_OR_RETURN(uint64_t size, cursor.Varint());
    Entry entry;
    entry.offset = cursor.offset();
    GW_ASSIGN_OR_RETURN(entry.bytes, cursor.Bytes(size));
    file.properties.push_back(entry);
  }
  return cursor.ExpectDone("the properties");
}

}  // namespace

std::string OpName::ToString() const { return name.empty() ? std::string(dialect) : absl::StrCat(dialect, ".", name); }

absl::StatusOr<Section> ReadSection(Cursor& cursor) {
  GW_ASSIGN_OR_RETURN(uint8_t byte, cursor.Byte());
  const uint8_t id = byte & 0x7F;
  if (id >= kSectionCount) return cursor.Error(absl::StrCat("unknown section ", id));
  GW_ASSIGN_OR_RETURN(uint64_t length, cursor.Varint());
  if (byte & 0x80) {
    GW_ASSIGN_OR_RETURN(uint64_t alignment, cursor.Varint());
    GW_RETURN_IF_ERROR(cursor.Align(alignment));
  }
  GW_ASSIGN_OR_RETURN_WITH(Cursor body, cursor.Slice(length), absl::StrCat("section ", id));
  return Section{static_cast<SectionId>(id), body};
}

absl::StatusOr<Container> Container::Parse(absl::string_view bytes) {
  Cursor cursor(bytes);
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::InvalidArgumentError("not MLIR bytecode: the magic number is missing");
  }
  GW_RETURN_IF_ERROR(cursor.Bytes(kMagic.size()).status());
  Container file;
  GW_ASSIGN_OR_RETURN(file.version, cursor.Varint());
  if (file.version > kNewestVersion) {
    return absl::UnimplementedError(
        absl::StrCat("MLIR bytecode version ", file.version, " is newer than ", kNewestVersion));
  }
  GW_ASSIGN_OR_RETURN(file.producer, cursor.CString());
  GW_ASSIGN_OR_RETURN(Sections sections, ReadSections(cursor));
  const auto section = [&](SectionId id) { return sections[static_cast<size_t>(id)]; };
  for (SectionId id : {SectionId::kStrings, SectionId::kDialects, SectionId::kAttributes, SectionId::kAttributeOffsets,
                       SectionId::kIr}) {
    if (!section(id).has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("section ", static_cast<int>(id), " is missing"));
    }
  }
  GW_RETURN_IF_ERROR(ReadStrings(*section(SectionId::kStrings), file));
  GW_RETURN_IF_ERROR(ReadDialects(*section(SectionId::kDialects), file));
  GW_RETURN_IF_ERROR(
      ReadAttributesAndTypes(*section(SectionId::kAttributeOffsets), *section(SectionId::kAttributes), file));
  if (file.version >= 5) {
    if (!section(SectionId::kProperties).has_value()) return absl::InvalidArgumentError("section 8 is missing");
    GW_RETURN_IF_ERROR(ReadProperties(*section(SectionId::kProperties), file));
  }
  file.ir = *section(SectionId::kIr);
  return file;
}

}  // namespace gangway::bytecode
