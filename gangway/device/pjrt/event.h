// Events of the C API as futures.
#pragma once

#include <memory>

#include "gangway/base/future.h"
#include "gangway/device/pjrt/plugin.h"

namespace gangway::device::pjrt {

// Takes the event over. Its callbacks run on a thread of the plugin.
Future<Unit> ToFuture(std::shared_ptr<const Plugin> plugin, PJRT_Event* event);

// Takes the event over and blocks until it is ready: for a device's own thread only, where the event is bounded by the
// launch that runs there.
absl::Status Await(const Plugin& plugin, PJRT_Event* event);

// Whether it is ready already; true where the plugin does not tell.
bool IsReady(const Plugin& plugin, PJRT_Event* event);

void Destroy(const Plugin& plugin, PJRT_Event* event);

}  // namespace gangway::device::pjrt
