// How fast devices and the links between them are, and how long a program takes there.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "gangway/cost/module_cost.h"

namespace gangway::cost {

struct DeviceModel {
  double matmul_flops_per_second = 0;
  double flops_per_second = 0;  // of everything else
  double bytes_per_second = 0;  // memory
};

struct LinkModel {
  double latency_seconds = 0;   // of one collective, however small
  double bytes_per_second = 0;  // received per device while all devices receive
};

struct Machine {
  std::string name;
  DeviceModel device;
  LinkModel link;
};

// "cpu", "h100", "tpu-v5p": published peak rates halved, which is what programs reach; for comparing plans, not for
// promises.
std::optional<Machine> MachineByName(absl::string_view name);

struct TimeEstimate {
  double compute_seconds = 0;
  double memory_seconds = 0;
  double collective_seconds = 0;
  // Compute and memory overlap, collectives do not.
  double total() const;
};

TimeEstimate EstimateTime(const ModuleCost& cost, const Machine& machine);

}  // namespace gangway::cost
