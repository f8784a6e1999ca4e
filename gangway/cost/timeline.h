// When each operation of a per-device program runs, in the order in which it stands: operations one after another, and
// beside them the collectives that were started and not waited for yet. All devices run the same program, so the
// timeline of one is that of all.
#pragma once

#include <cstdint>
#include <vector>

#include "gangway/cost/machine.h"
#include "gangway/hlo/module.h"

namespace gangway::cost {

enum class Engine : uint8_t { kCompute, kLink, kNetwork };

struct Span {
  const hlo::Instruction* instruction = nullptr;  // borrowed from the module
  Engine engine = Engine::kCompute;
  double begin = 0, end = 0;  // seconds from the start of the program; of a loop, its first turn
};

// How long the device had nothing else to do than to wait for a collective.
struct Wait {
  const hlo::Instruction* collective = nullptr;  // the one that was started
  double seconds = 0;                            // in all runs of it
  double runs = 1;
};

struct Timeline {
  double seconds = 0;
  double compute_seconds = 0;     // devices busy
  double collective_seconds = 0;  // links or network busy
  double waited_seconds = 0;      // seconds - compute_seconds
  std::vector<Wait> waits;        // in the order of the program
  std::vector<Span> spans;        // that take time, in the order of the program
};

// Loops run as often as TripCount says, once where it does not know; of branches the longest.
Timeline TimelineOf(const hlo::Module& module, const Machine& machine);

// How long one operation holds a device up: arithmetic beside the traffic of what stands in memory (fusion.h); control
// flow with all that it calls; a collective that was not split from first to last; the halves of one not at all.
double SecondsOf(const hlo::Instruction& instruction, int64_t num_devices, const Machine& machine);

// The collective that an operation runs or starts: itself, or what an async-start calls; null for none.
const hlo::Instruction* CollectiveOf(const hlo::Instruction& instruction);

}  // namespace gangway::cost
