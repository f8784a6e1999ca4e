#include "gangway/passes/passes.h"

namespace gangway::passes {

absl::StatusOr<bool> RunDce(hlo::Module& module) {
  size_t computations = module.computations().size();
  module.RemoveUnreachable();
  bool changed = computations != module.computations().size();
  for (const auto& computation : module.computations()) changed |= computation->RemoveDead() > 0;
  // What the removed instructions called.
  computations = module.computations().size();
  module.RemoveUnreachable();
  return changed || computations != module.computations().size();
}

}  // namespace gangway::passes
