// Cheapest way through the states of one stage.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gangway/partition/digits.h"
#include "gangway/partition/reshard_step.h"

namespace gangway::partition {

// All that the way depends on: digits that change hands, and the axis parts that hold them. Shardings of many arrays
// differ by the same few.
struct StepProblem {
  double bytes = 0;                    // of the array, split by the digits that stay where they are
  std::vector<int64_t> digits, atoms;  // sizes
  Holders from, to;
  uint32_t pending = 0;  // bit per atom: partial sums to be resolved

  friend bool operator==(const StepProblem&, const StepProblem&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StepProblem& p) {
    return H::combine(std::move(h), p.bytes, p.digits, p.atoms, p.from, p.to, p.pending);
  }
};

// Remembers what it found.
class StepSearch {
 public:
  // Steps from view.from to view.to for an array of elements of `element_bytes`; partial results that the target has
  // and the start has not are left to the caller. Never fails. Over many axes the way is the cheapest of those looked
  // at.
  std::vector<ReshardStep> Steps(const DigitView& view, int element_bytes);

 private:
  absl::flat_hash_map<StepProblem, std::vector<ReshardStep>> found_;  // in the problem's digits and atoms
};

}  // namespace gangway::partition
