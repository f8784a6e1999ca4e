// Which annotation would remove a collective: annotations are tried, by compiling the program again with each.
#pragma once

#include "gangway/explain/explain.h"
#include "gangway/explain/program.h"
#include "gangway/partition/reason.h"

namespace gangway::explain {

// Fills `remedy` and `remedies_tried` of the collectives, the dearest first, until the time is up. `cleaned` is the
// program whose instructions the reasons name, before completion.
void FindRemedies(const hlo::Module& cleaned, const Program& program, const std::vector<partition::Reason>& reasons,
                  const ExplainOptions& options, double bytes, std::vector<Collective>* collectives);

}  // namespace gangway::explain
