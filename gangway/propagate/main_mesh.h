// The one mesh over which completion works.
#pragma once

#include "absl/types/span.h"
#include "gangway/hlo/module.h"
#include "gangway/mesh/mesh.h"

namespace gangway::propagate {

// The program's own mesh when it names one; otherwise the coarsest mesh whose axes express every annotation (their
// common refinement), or the first annotation's mesh when there is none. Without annotations: one axis over all
// partitions. Also registers it with the module when that has no mesh.
MeshRef ChooseMesh(hlo::Module& module, absl::Span<const hlo::Computation* const> computations);

}  // namespace gangway::propagate
