#include "gangway/cost/machine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gangway::cost {
namespace {

// One core of a server and shared memory; the accelerators' data sheets.
const Machine& Cpu() {
  static const Machine& machine = *new Machine{"cpu", {5e10, 5e9, 1e10, 8e9}, {3e-5, 2e9}, {1e-4, 1e9}, 0};
  return machine;
}
const Machine& H100() {
  static const Machine& machine =
      *new Machine{"h100", {4.9e14, 3.3e13, 1.7e12, 8e10}, {1e-5, 2.2e11}, {2e-5, 2.5e10}, 8};
  return machine;
}
const Machine& TpuV5p() {
  static const Machine& machine =
      *new Machine{"tpu-v5p", {2.3e14, 4e12, 1.4e12, 9.5e10}, {2e-6, 1.5e11}, {5e-5, 3e9}, 8960};
  return machine;
}

}  // namespace

absl::StatusOr<Machine> MachineByName(absl::string_view name) {
  for (const Machine* machine : {&Cpu(), &H100(), &TpuV5p()}) {
    if (machine->name == name) return *machine;
  }
  return absl::InvalidArgumentError(absl::StrCat("no model of ", name));
}

double TimeEstimate::total() const { return std::max(compute_seconds, memory_seconds) + collective_seconds; }

TimeEstimate EstimateTime(const ModuleCost& cost, const Machine& machine) {
  TimeEstimate time;
  time.compute_seconds = cost.matmul_flops / machine.device.matmul_flops_per_second +
                         (cost.flops - cost.matmul_flops) / machine.device.flops_per_second;
  time.memory_seconds = cost.bytes_accessed / machine.device.bytes_per_second;
  for (const auto& [name, collective] : cost.collectives) {
    time.collective_seconds +=
        collective.executed * machine.link.latency_seconds + collective.bytes_received / machine.link.bytes_per_second;
  }
  return time;
}

}  // namespace gangway::cost
