// What compilation noted down about its choices, for gangway explain. Costs nothing unless asked for.
#pragma once

#include <vector>

#include "gangway/partition/reason.h"
#include "gangway/propagate/propagate.h"

namespace gangway::compile {

struct Records {
  propagate::PropagationReport propagation;
  std::vector<partition::Reason> reasons;  // numbered; the per-device program's metadata refers to them
};

}  // namespace gangway::compile
