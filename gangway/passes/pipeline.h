// A list of passes run in order, which can be dumped, skipped and bisected.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/hlo/module.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {

struct PipelineOptions {
  absl::flat_hash_set<std::string> skip;                       // passes by name
  int64_t bisect_limit = std::numeric_limits<int64_t>::max();  // steps that may run; the rest is passed over
  bool verify = false;                                         // hlo::Verify after every step that changed something
  // Called before the first step (name "input") and after every one that changed the module.
  std::function<void(int64_t step, absl::string_view name, const hlo::Module&)> dump;
};

// What a step did.
struct StepRecord {
  std::string name;
  bool skipped = false;
  bool changed = false;
};

class Pipeline {
 public:
  using Step = std::function<absl::StatusOr<bool>(hlo::Module&)>;

  void Add(std::string name, Step step) { steps_.emplace_back(std::move(name), std::move(step)); }
  void Add(const Pass& pass) { Add(std::string(pass.name), pass.run); }
  // By the name of AllPasses.
  absl::Status AddByName(absl::string_view name);

  // Errors name the step. The records tell which step is the last before a fault when bisecting.
  absl::StatusOr<std::vector<StepRecord>> Run(hlo::Module& module, const PipelineOptions& options = {}) const;

 private:
  std::vector<std::pair<std::string, Step>> steps_;
};

// What a per-device program goes through before it is handed to a device; with `partitioned` also what only collectives
// call for.
Pipeline PerDevicePipeline(bool partitioned);

// Repeats the steps until none changes the module, at most `rounds` times.
Pipeline::Step UntilStable(std::vector<PassFunction> passes, int rounds);

}  // namespace gangway::passes
