#include "gangway/device/pjrt/module_attribute.h"

#include <cstdint>

namespace gangway::device::pjrt {
namespace {

// Numbers: xla/service/hlo.proto, xla/xla_data.proto.
constexpr uint64_t kFrontendAttributes = 19, kMap = 1, kMapKey = 1, kMapValue = 2;
constexpr uint64_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

std::optional<uint64_t> TakeVarint(absl::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

struct Field {
  uint64_t number = 0;
  absl::string_view value;  // of strings and messages
};

std::optional<Field> TakeField(absl::string_view& bytes) {
  const std::optional<uint64_t> tag = TakeVarint(bytes);
  if (!tag.has_value()) return std::nullopt;
  std::optional<uint64_t> size = 0;
  switch (*tag & 7) {
    case kVarint:
      if (!TakeVarint(bytes).has_value()) return std::nullopt;
      break;
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kBytes:
      size = TakeVarint(bytes);
      break;
    default:
      return std::nullopt;
  }
  if (!size.has_value() || *size > bytes.size()) return std::nullopt;
  Field field = {*tag >> 3, bytes.substr(0, *size)};
  bytes.remove_prefix(*size);
  return field;
}

}  // namespace

std::optional<absl::string_view> ModuleAttribute(absl::string_view hlo, absl::string_view key) {
  while (const std::optional<Field> field = TakeField(hlo)) {
    if (field->number != kFrontendAttributes) continue;
    absl::string_view attributes = field->value;
    while (const std::optional<Field> entry = TakeField(attributes)) {
      if (entry->number != kMap) continue;
      absl::string_view parts = entry->value, name, value;
      while (const std::optional<Field> part = TakeField(parts)) {
        if (part->number == kMapKey) name = part->value;
        if (part->number == kMapValue) value = part->value;
      }
      if (name == key) return value;
    }
  }
  return std::nullopt;
}

}  // namespace gangway::device::pjrt
