// How fast devices and the links between them are, and how long a program takes there.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/cost/module_cost.h"

namespace gangway::cost {

struct DeviceModel {
  double matmul_flops_per_second = 0;
  double flops_per_second = 0;  // of everything else
  double bytes_per_second = 0;  // memory
  double memory_bytes = 0;
};

struct LinkModel {
  double latency_seconds = 0;   // of one collective, however small
  double bytes_per_second = 0;  // received per device while all devices receive
};

struct Machine {
  std::string name;
  DeviceModel device;
  LinkModel link;              // between devices of one island
  LinkModel network;           // between islands
  int64_t island_devices = 0;  // so many consecutive devices are an island; 0: all are on one
};

// "cpu", "h100", "tpu-v5p": published peak rates halved, which is what programs reach; for comparing plans, not for
// promises. Islands are a host of eight H100, or a whole TPU pod.
// INVALID_ARGUMENT names what has no model.
absl::StatusOr<Machine> MachineByName(absl::string_view name);

struct TimeEstimate {
  double compute_seconds = 0;
  double memory_seconds = 0;
  double collective_seconds = 0;
  // Compute and memory overlap, collectives do not.
  double total() const;
};

// As if all devices were on one island; timeline.h knows better.
TimeEstimate EstimateTime(const ModuleCost& cost, const Machine& machine);

}  // namespace gangway::cost
