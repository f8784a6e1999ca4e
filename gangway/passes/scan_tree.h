// Trees of slices that scan several arrays together by any elementwise function (jax.lax.associative_scan of a tuple):
//   reduced = f(e[0::2], e[1::2]);  odd = scan(reduced);  scan(e) = e[0], odd[0], f(odd[0], e[2]), odd[1] ...
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gangway/hlo/builder.h"

namespace gangway::passes {

struct ScanTree {
  // One of the arrays that are scanned together.
  struct Array {
    hlo::Instruction* elements = nullptr;
    hlo::Instruction* reduced = nullptr;  // neighbours combined: f of this array, applied to slices
    friend bool operator==(const Array&, const Array&) = default;
  };
  int64_t dim = 0;
  std::vector<Array> arrays;  // the first one's scan is the root
  // Scans of the tree's lower levels, which look like trees themselves.
  std::vector<const hlo::Instruction*> inner;
};

// The tree under `root`; nullopt when there is none, or when it is shorter than four elements. What XLA would have
// removed may be missing: scans of arrays that only the function's later argument reads.
std::optional<ScanTree> MatchScanTree(hlo::Instruction* root);

// f as a computation of scalars: parameters are one element of every array, then those that come after.
hlo::Computation* ScalarCombiner(const ScanTree& tree, hlo::Module* module);

}  // namespace gangway::passes
