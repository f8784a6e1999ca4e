// An estimate of the memory a per-device program needs at most, from the lives of its values in program order.
#pragma once

#include <cstdint>

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
PeakMemory PeakMemoryOf(const hlo::Module& module);

}  // namespace gangway::cost
