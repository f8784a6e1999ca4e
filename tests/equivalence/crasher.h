// Programs that once failed, as files: HLO text below a first line that says how it is run.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gangway/hlo/module.h"

namespace gangway::equivalence {

struct CrasherOptions {
  uint64_t seed = 0;      // of the arguments
  bool propagate = true;  // shardings are completed first
};

// CheckEquivalent right after partitioning and after the passes that follow it. Verifies the program first.
absl::Status RunCrasher(const hlo::Module& module, const CrasherOptions& options);
// The same for a kept file.
absl::Status RunCrasherFile(const std::string& path);
// What such a file holds.
std::string CrasherText(const hlo::Module& module, const CrasherOptions& options, const std::string& failure);

}  // namespace gangway::equivalence
