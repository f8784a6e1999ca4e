// Calls of a program to functions of its client: the names that importer, partitioner and pipeline share.
#pragma once

#include "absl/strings/string_view.h"

namespace gangway::hlo {

// JAX's target (jax/_src/callback.py, lowering for CPU): its attribute `index` says which of the program's callbacks.
inline constexpr absl::string_view kJaxHostCallback = "xla_ffi_python_cpu_callback";
// What it becomes: device/HOSTED.md.
inline constexpr absl::string_view kHostCallback = "gangway.host_callback";
// Frontend attribute: the partition that calls, where one calls for all.
inline constexpr absl::string_view kCallingDevice = "gangway.calling_device";

}  // namespace gangway::hlo
