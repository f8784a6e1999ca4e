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
  // Passed to the plugin as they are, but for {"cpu_device_count", n}: n > 1 makes n clients with one device and a
  // share of the cores each. In one client of n devices, every operation of every device would spread over n threads
  // and XLA's thread pool would spin and steal instead of computing (pjrt/README.md has the figures).
  std::vector<std::pair<std::string, std::variant<int64_t, bool, float, std::string>>> create_options;
  bool deterministic = false;  // equal inputs give equal bits, at the price of speed where the platform asks one
  // The folder of this host in which programs may write and read files, e.g. checkpoints; empty: nowhere.
  std::string files = "";
  // A folder for machine code: a program that was compiled for such a plugin on such a host is loaded from there.
  // Empty: every process compiles.
  std::string cache = "";
};

// Loads the plugin (once per process and path, whatever the number of clients) and starts its devices, with one thread
// each. Errors name the plugin: NOT_FOUND for a missing file, INVALID_ARGUMENT for one that is no plugin, UNIMPLEMENTED
// for another API version or a missing entry point. A plugin without the FFI extension runs programs without hosted
// operations.
absl::StatusOr<std::unique_ptr<Client>> MakePjrtClient(const PjrtOptions& options);

}  // namespace gangway::device
