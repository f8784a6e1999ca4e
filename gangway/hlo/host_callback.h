// Calls of a program to functions of its client: the names that importer, partitioner and pipeline share.
#pragma once

#include "absl/strings/string_view.h"

namespace gangway::hlo {

// JAX's target (jax/_src/callback.py, lowering for CPU): its attribute `index` says which of the program's callbacks.
inline constexpr absl::string_view kJaxHostCallback = "xla_ffi_python_cpu_callback";
// The same, called by every device with its own parts of the operands.
inline constexpr absl::string_view kJaxPartitionedHostCallback = "xla_ffi_partitioned_python_cpu_callback";
inline bool IsJaxHostCallback(absl::string_view target) {
  return target == kJaxHostCallback || target == kJaxPartitionedHostCallback;
}
// What it becomes: device/HOSTED.md.
inline constexpr absl::string_view kHostCallback = "gangway.host_callback";
// Frontend attribute: the partition that calls, where one calls for all.
inline constexpr absl::string_view kCallingDevice = "gangway.calling_device";
// Frontend attribute, "true": every partition calls with its parts. The client does not know their extents, so the call
// tells them.
inline constexpr absl::string_view kCallsWithParts = "gangway.calls_with_parts";

// JAX's target for a question to the partitioner; its backend_config is the key to the client's function.
inline constexpr absl::string_view kInspectSharding = "InspectSharding";

// JAX's target for a use of a value that compilers must respect (jax.lax.dce_sink); there is nothing to run.
inline constexpr absl::string_view kDceSink = "dce_sink";

}  // namespace gangway::hlo
