// From a compiled program and the records of its compilation to collectives and tensors with their reasons.
#pragma once

#include "gangway/compile/records.h"
#include "gangway/explain/explain.h"
#include "gangway/explain/program.h"

namespace gangway::explain {

// Dearest first; the shares are of `seconds`.
std::vector<Collective> Collectives(const hlo::Module& per_device, const Program& program,
                                    const std::vector<partition::Reason>& reasons, const cost::Machine& machine,
                                    double seconds);

// Arrays of at least `min_bytes`, the largest first, at most `limit`.
std::vector<Tensor> Tensors(const Program& program, int64_t min_bytes, int64_t limit);

}  // namespace gangway::explain
