// LAPACK's routines (gangway/lapack) as handlers of the XLA FFI: what a CPU plugin leaves to its host.
#pragma once

#include "absl/status/status.h"
#include "gangway/device/pjrt/ffi_extension.h"
#include "gangway/device/pjrt/plugin.h"

namespace gangway::device::pjrt {

// Before the plugin's first client is made. The handlers keep no state.
absl::Status RegisterLapackCalls(const Plugin& plugin, const FfiExtension& ffi);

}  // namespace gangway::device::pjrt
