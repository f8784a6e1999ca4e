// The attributes of a call by the XLA FFI, by name; the plugin sorts them, there are few.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla/ffi/api/c_api.h"

namespace gangway::device::pjrt {

// Borrows the frame's. INVALID_ARGUMENT, naming it, for an attribute that is missing or of another type.
class FfiAttributes {
 public:
  explicit FfiAttributes(const XLA_FFI_Attrs& attrs) : attrs_(attrs) {}

  bool Has(absl::string_view name) const;
  absl::StatusOr<int64_t> Int(absl::string_view name) const;
  absl::StatusOr<absl::string_view> String(absl::string_view name) const;
  absl::StatusOr<absl::Span<const int64_t>> Ints(absl::string_view name) const;

 private:
  const void* Find(absl::string_view name, XLA_FFI_AttrType type) const;

  const XLA_FFI_Attrs& attrs_;
};

}  // namespace gangway::device::pjrt
