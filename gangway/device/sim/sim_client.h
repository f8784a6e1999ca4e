// Devices simulated on the host: the simplest implementation of the device interface, with an evaluator behind it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gangway/device/device.h"

namespace gangway::device {

// Dense bytes of one array; shared, because buffers, launches and copies read the same value.
using SimValue = std::shared_ptr<const std::vector<char>>;

// A program as an evaluator runs it. Thread-safe.
class SimProgram {
 public:
  virtual ~SimProgram() = default;
  virtual const std::vector<ArrayType>& inputs() const = 0;
  virtual const std::vector<ArrayType>& outputs() const = 0;
  // Inputs that a launch takes unless it is told to keep them.
  virtual const std::vector<int64_t>& donated() const = 0;
  // Runs on one device, on that device's thread; blocks while a hosted collective waits for the gang.
  virtual absl::StatusOr<std::vector<SimValue>> Run(absl::Span<const SimValue> inputs,
                                                    const LaunchContext& launch) const = 0;
};

struct SimOptions {
  int devices = 1;
  // Turns a CompileRequest into a program. Injected, so that this folder needs no evaluator and sees no operation.
  std::function<absl::StatusOr<std::shared_ptr<const SimProgram>>(const CompileRequest&)> compile;
};

// One thread per device. Platform "sim".
std::unique_ptr<Client> MakeSimClient(SimOptions options);

}  // namespace gangway::device
