// Devices that compute next to nothing and take as long as they are told, in simulated time: for tests of the runtime
// and for clusters larger than the machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gangway/base/sim_timeline.h"
#include "gangway/device/device.h"

namespace gangway::device {

// A program is a text of words instead of HLO:
//   outputs=N    each s32[], or s32[elements]: first the sum of all arguments' first elements plus 1 (default 1)
//   elements=N
//   ms=D         device time (decimal), after all inputs and earlier launches           (default 0)
//   all_reduce   outputs are summed over the partitions and ready when the last of them is there
//   donates=I    takes argument I by donation, unless told to keep it
//   fail         every launch fails
//   malformed    does not compile
struct ModelledOptions {
  int devices = 1;
  std::string name = "modelled";
  // Fails launches on a device from then on, e.g. a broken host; set by tests.
  std::vector<bool>* broken = nullptr;
};

// `timeline` runs everything and must outlive the client; single-threaded.
std::unique_ptr<Client> MakeModelledClient(SimTimeline& timeline, ModelledOptions options);

}  // namespace gangway::device
