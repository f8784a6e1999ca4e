// Container: the frame of an MLIR bytecode file (versions 0 to 6): sections, strings, op names, and where each
// attribute, type and property entry lies. Nothing inside the entries is decoded here.
//
// Everything is a view into the file's bytes, which must outlive the container. Immutable after Parse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/stablehlo/bytecode/cursor.h"

namespace gangway::bytecode {

enum class SectionId : uint8_t {
  kStrings = 0,
  kDialects = 1,
  kAttributes = 2,
  kAttributeOffsets = 3,
  kIr = 4,
  kResources = 5,
  kResourceOffsets = 6,
  kDialectVersions = 7,
  kProperties = 8,
};
inline constexpr int kSectionCount = 9;

inline constexpr uint64_t kNewestVersion = 6;

struct Section {
  SectionId id;
  Cursor body;
};

// Reads one section header and skips its payload in `cursor`.
absl::StatusOr<Section> ReadSection(Cursor& cursor);

struct OpName {
  absl::string_view dialect;  // "vhlo"
  absl::string_view name;     // "add_v1"
  // A registered op keeps its properties in the properties section, another one in an attribute.
  bool registered = true;
  std::string ToString() const;  // "vhlo.add_v1"
};

// Where an attribute, type or property lies.
struct Entry {
  absl::string_view dialect;  // empty for properties
  absl::string_view bytes;
  size_t offset = 0;   // of `bytes` in the file
  bool custom = true;  // false: NUL-terminated MLIR assembly text
  Cursor cursor() const { return Cursor(bytes, offset); }
};

struct Container {
  uint64_t version = 0;
  absl::string_view producer;  // e.g. "StableHLO_v1.16.3"
  std::vector<absl::string_view> strings;
  std::vector<absl::string_view> dialects;
  std::vector<OpName> op_names;
  std::vector<Entry> attributes;
  std::vector<Entry> types;
  std::vector<Entry> properties;
  Cursor ir{absl::string_view()};

  static absl::StatusOr<Container> Parse(absl::string_view file);
};

}  // namespace gangway::bytecode
