// The devices a program in a file is to be partitioned for: the options that say so, and what they come to.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"

namespace CLI {
class App;
}

namespace gangway::cli {

struct DeviceOptions {
  int64_t devices = 0;       // above 0: as asked
  std::string mesh;          // "data=4,model=2"; "" for none
  int64_t memory_bytes = 0;  // of each; 0: as much as it takes
};

// --devices, --mesh and --device-memory.
void AddDeviceOptions(CLI::App& command, DeviceOptions* options);

// As asked, else as the program's meshes say, else its header. A mesh that is asked for becomes the program's where it
// has none.
absl::StatusOr<int64_t> DeviceCount(const DeviceOptions& options, hlo::Module* module);

}  // namespace gangway::cli
