// What a controller checks while programs run, as `run`, `serve` and `controller` take it from the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/controller/inspection.h"

namespace CLI {
class App;
}

namespace gangway::cli {

struct CheckOptions {
  int64_t replicas_every = 0;  // 0: never
  bool nans = false;
  std::string record_file;  // "" for none

  // The same as arguments of `gangway controller`.
  std::vector<std::string> Arguments() const;
};

// --check-replicas, --check-nans and --record.
void AddCheckOptions(CLI::App& command, CheckOptions* options);

// Faults are logged as errors. Opens the record file.
absl::StatusOr<controller::InspectOptions> MakeInspectOptions(const CheckOptions& options);

}  // namespace gangway::cli
