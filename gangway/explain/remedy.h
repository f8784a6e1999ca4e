// Which annotation would remove a collective: annotations are tried, by compiling the program again with each.
#pragma once

#include <chrono>

#include "gangway/explain/explain.h"
#include "gangway/explain/program.h"
#include "gangway/partition/reason.h"

namespace gangway::explain {

// Until when annotations are tried, and how long a trial is expected to take: none begins that would not end in time.
struct Budget {
  std::chrono::steady_clock::time_point end;
  std::chrono::steady_clock::duration trial;
};

// Fills `remedy` and `remedies_tried` of the collectives, the dearest first, as far as the time goes. `cleaned` is the
// program whose instructions the reasons name, before completion; `now` has its bytes and seconds.
void FindRemedies(const hlo::Module& cleaned, const Program& program, const std::vector<partition::Reason>& reasons,
                  const ExplainOptions& options, const Budget& budget, const Explanation& now,
                  std::vector<Collective>* collectives);

}  // namespace gangway::explain
