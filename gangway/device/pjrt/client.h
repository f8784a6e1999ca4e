// Devices served by a PJRT C-API plugin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/device/device.h"

namespace gangway::device {

struct PjrtOptions {
  std::string plugin_path;
  // Passed to the plugin as they are, e.g. {"cpu_device_count", 8}.
  std::vector<std::pair<std::string, std::variant<int64_t, bool, float, std::string>>> create_options;
};

// Loads the plugin (once per process and path, whatever the number of clients) and starts its devices, with one thread
// each. Errors name the plugin: NOT_FOUND for a missing file, INVALID_ARGUMENT for one that is no plugin, UNIMPLEMENTED
// for another API version or a missing entry point. A plugin without the FFI extension runs programs without hosted
// operations.
absl::StatusOr<std::unique_ptr<Client>> MakePjrtClient(const PjrtOptions& options);

}  // namespace gangway::device
