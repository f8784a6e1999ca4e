// gangway.host_callback (HOSTED.md): a running program calls a function of its client.
#pragma once

#include "absl/status/status.h"
#include "gangway/device/pjrt/ffi_extension.h"
#include "gangway/device/pjrt/plugin.h"

namespace gangway::device::pjrt {

// Before the plugin's first client is made. No thread is blocked while the client runs its function.
absl::Status RegisterHostCallback(const Plugin& plugin, const FfiExtension& ffi);

}  // namespace gangway::device::pjrt
