// Completion and partitioning, repeated: of several ways to lay a program out, the one whose result moves least.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"
#include "gangway/partition/partition.h"
#include "gangway/propagate/propagate.h"

namespace gangway::compile {

struct PlannedProgram {
  std::unique_ptr<hlo::Module> whole;  // with complete shardings
  partition::Partitioned partitioned;
  std::vector<propagate::Placement> placements;  // beside the annotations
  propagate::PropagationReport report;
};

struct PlanSearchOptions {
  propagate::PropagateOptions propagation;
  bool record_reasons = false;  // fills Partitioned::reasons
  // Instructions that may be localized in all tries together; the first try is always made.
  int64_t budget = 60000;
};

// First what the annotations alone give; where dimensions of few elements stayed whole, also with them split. Then,
// while the budget lasts, with one index of the program after the other (those of most arithmetic) placed on an axis
// where the annotations leave it open; what parameters and results look like from outside stays as in the first try.
// Each completion is partitioned again in the knowledge of what its instructions asked for. Tries are compared by bytes
// received and arithmetic per device; one that needs more memory than the first is refused. Deterministic: does not
// look at the clock.
absl::StatusOr<PlannedProgram> SearchPlan(std::unique_ptr<hlo::Module> module, const PlanSearchOptions& options);

}  // namespace gangway::compile
