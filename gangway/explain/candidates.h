// Which annotations might remove a collective: guesses, each to be tried.
#pragma once

#include <string>
#include <vector>

#include "gangway/explain/program.h"
#include "gangway/mesh/sharding.h"
#include "gangway/partition/reason.h"

namespace gangway::explain {

// A sharding for one array of the whole program.
struct Candidate {
  std::string instruction;
  Sharding sharding;
};

// The likely ones first, each once, a bounded number. Empty where no annotation is known that could help.
std::vector<Candidate> CandidatesFor(const partition::Reason& reason, const Program& program);

}  // namespace gangway::explain
