// The serialized xla.CompileOptionsProto that programs are compiled with.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gangway::device::pjrt {

// For one device, any device: compile_portable_executable with one replica and one partition. `flags` are boolean
// fields of xla.DebugOptions, set over the plugin's defaults.
std::string PortableCompileOptions(absl::Span<const std::pair<absl::string_view, bool>> flags);

// The same with the flags that suit a platform and a serialized program (device/HOSTED.md, Attributes of the module).
// `deterministic`: equal inputs give equal bits. On CPUs they always do.
std::string CompileOptionsFor(absl::string_view platform, bool deterministic, absl::string_view hlo);

}  // namespace gangway::device::pjrt
