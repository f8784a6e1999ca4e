#include "gangway/device/pjrt/ffi_attributes.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace gangway::device::pjrt {
namespace {

absl::Status Missing(absl::string_view name, absl::string_view type) {
  return absl::InvalidArgumentError(absl::StrCat("attribute ", name, " is missing or not ", type));
}

absl::string_view NameAt(const XLA_FFI_Attrs& attrs, int64_t i) { return {attrs.names[i]->ptr, attrs.names[i]->len}; }

}  // namespace

const void* FfiAttributes::Find(absl::string_view name, XLA_FFI_AttrType type) const {
  for (int64_t i = 0; i < attrs_.size; ++i) {
    if (NameAt(attrs_, i) == name) return attrs_.types[i] == type ? attrs_.attrs[i] : nullptr;
  }
  return nullptr;
}

bool FfiAttributes::Has(absl::string_view name) const {
  for (int64_t i = 0; i < attrs_.size; ++i) {
    if (NameAt(attrs_, i) == name) return true;
  }
  return false;
}

absl::StatusOr<int64_t> FfiAttributes::Int(absl::string_view name) const {
  const auto* scalar = static_cast<const XLA_FFI_Scalar*>(Find(name, XLA_FFI_AttrType_SCALAR));
  if (scalar == nullptr || scalar->dtype != XLA_FFI_DataType_S64) return Missing(name, "an i64");
  int64_t value;
  std::memcpy(&value, scalar->value, sizeof value);
  return value;
}

absl::StatusOr<absl::string_view> FfiAttributes::String(absl::string_view name) const {
  const auto* span = static_cast<const XLA_FFI_ByteSpan*>(Find(name, XLA_FFI_AttrType_STRING));
  if (span == nullptr) return Missing(name, "a string");
  return absl::string_view(span->ptr, span->len);
}

absl::StatusOr<absl::Span<const int64_t>> FfiAttributes::Ints(absl::string_view name) const {
  const auto* array = static_cast<const XLA_FFI_Array*>(Find(name, XLA_FFI_AttrType_ARRAY));
  if (array == nullptr || array->dtype != XLA_FFI_DataType_S64) return Missing(name, "an array<i64>");
  return absl::MakeConstSpan(static_cast<const int64_t*>(array->data), array->size);
}

}  // namespace gangway::device::pjrt
