// The serialized xla.CompileOptionsProto that programs are compiled with.
#pragma once

#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gangway::device::pjrt {

// A field of xla.DebugOptions, set over the plugin's default.
struct CompileFlag {
  absl::string_view name;
  std::variant<bool, absl::string_view> value;
};

// For one device, any device: compile_portable_executable with one replica and one partition.
std::string PortableCompileOptions(absl::Span<const CompileFlag> flags);

// The same with the flags that suit a platform and a serialized program (device/HOSTED.md, Attributes of the module).
// `deterministic`: equal inputs give equal bits. On CPUs they always do.
std::string CompileOptionsFor(absl::string_view platform, bool deterministic, absl::string_view hlo);

}  // namespace gangway::device::pjrt
