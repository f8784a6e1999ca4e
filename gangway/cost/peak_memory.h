// An estimate of the memory a per-device program needs at most, from the lives of its values.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gangway/cost/order.h"
#include "gangway/hlo/module.h"

namespace gangway::cost {

struct PeakMemory {
  int64_t argument_bytes = 0;   // live throughout, unless donated ones are overwritten
  int64_t output_bytes = 0;     // beyond donated arguments
  int64_t temporary_bytes = 0;  // at the fullest moment, without arguments and outputs
  int64_t total() const { return argument_bytes + output_bytes + temporary_bytes; }
};

// Counted as a good compiler would place them: views take no memory; an elementwise value with one elementwise reader
// is fused into it; an operation may write over an operand of its size that ends there; loop state is updated in place.
PeakMemory PeakMemoryOf(const hlo::Module& module, OrderKind order = OrderKind::kAsWritten);

// The one of breadth and depth first that needs less memory; breadth first where they are alike.
OrderKind LeanerOrder(const hlo::Module& module);

// Places in a computation are indices into its instructions.
using Places = absl::flat_hash_map<const hlo::Instruction*, int64_t>;

// When a computation holds most, and the values that take memory then.
struct FullestMoment {
  int64_t place = 0;
  std::vector<const hlo::Instruction*> held;  // in program order
  // Where each value of the computation is read last: by an operation that is no view and not fused into its readers;
  // the computation's size for what its result holds.
  Places last_use;
};
FullestMoment FullestMomentOf(const hlo::Computation& computation);

}  // namespace gangway::cost
