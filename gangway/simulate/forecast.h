// How long a program will take on a machine that need not be there: it is partitioned for its devices, ordered so that
// collectives run beside other work, and played on a model of the machine. All devices run one program, so ten thousand
// cost no more to simulate than eight.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/compile/compile.h"
#include "gangway/cost/machine.h"
#include "gangway/cost/peak_memory.h"
#include "gangway/cost/timeline.h"
#include "gangway/hlo/module.h"

namespace gangway::simulate {

struct ForecastOptions {
  compile::CompileOptions compile;  // host_collectives is of no account
  cost::Machine machine;
  bool overlap = true;  // start collectives early; otherwise each holds its device up
};

struct Forecast {
  std::string name;
  int64_t devices = 1;
  cost::Machine machine;
  std::unique_ptr<hlo::Module> program;  // of one device, in the order that was played
  cost::Timeline timeline;               // of it, borrowed from program
  double seconds_in_order = 0;           // had every collective held its device up
  double arithmetic_share = 0;           // of the time: matrix products at the machine's rate
  double bytes_received = 0;             // per device
  cost::PeakMemory memory;
  std::vector<std::string> unknown_loops;  // counted as one turn
};

// Takes the module as the user wrote it. Errors are those of compilation.
absl::StatusOr<Forecast> Simulate(std::unique_ptr<hlo::Module> module, const ForecastOptions& options);

// The `most_waits` longest waits are told.
std::string ToText(const Forecast& forecast, size_t most_waits);
std::string ToJson(const Forecast& forecast, size_t most_waits);
// A Chrome trace of one device, its links and its network; Perfetto opens it.
std::string ToTrace(const Forecast& forecast);

}  // namespace gangway::simulate
