// What a serialized module says to whoever compiles it.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace gangway::device::pjrt {

// The value of a frontend attribute of a serialized xla.HloModuleProto, a part of `hlo`; nothing where there is none or
// the bytes are no such message.
std::optional<absl::string_view> ModuleAttribute(absl::string_view hlo, absl::string_view key);

}  // namespace gangway::device::pjrt
