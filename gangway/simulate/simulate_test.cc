#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gangway/hlo/text.h"
#include "gangway/simulate/forecast.h"

namespace gangway::simulate {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// Two layers, their weights split over all devices and gathered where they are used: the second gather can run beside
// the first product.
constexpr char kTwoLayers[] = R"(
HloModule layers, num_partitions=DEVICES
ENTRY e {
  x = bf16[65536,4096] parameter(0), sharding={devices=[DEVICES,1]<=[DEVICES]}
  v = bf16[4096,4096] parameter(1), sharding={devices=[DEVICES,1]<=[DEVICES]}
  w = bf16[4096,4096] parameter(2), sharding={devices=[DEVICES,1]<=[DEVICES]}
  h = bf16[65536,4096] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = bf16[65536,4096] dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[DEVICES,1]<=[DEVICES]}
}
)";

Forecast Layers(int64_t devices, bool overlap, int64_t island_devices = 0, double memory = 8e10) {
  auto module = hlo::ParseModule(absl::StrReplaceAll(kTwoLayers, {{"DEVICES", absl::StrCat(devices)}}));
  EXPECT_TRUE(module.ok()) << module.status();
  ForecastOptions options;
  options.compile.num_partitions = devices;
  options.machine = *cost::MachineByName("h100");
  options.machine.island_devices = island_devices;
  options.machine.device.memory_bytes = memory;
  options.overlap = overlap;
  auto forecast = Simulate(*std::move(module), options);
  EXPECT_TRUE(forecast.ok()) << forecast.status();
  return *std::move(forecast);
}

TEST(SimulateTest, GathersRunBesideProducts) {
  const Forecast in_order = Layers(64, /*overlap=*/false), overlapped = Layers(64, /*overlap=*/true);
  EXPECT_LT(overlapped.timeline.seconds, 0.9 * in_order.timeline.seconds);
  EXPECT_EQ(overlapped.seconds_in_order, in_order.timeline.seconds);
  EXPECT_DOUBLE_EQ(overlapped.timeline.compute_seconds, in_order.timeline.compute_seconds);
  EXPECT_THAT(hlo::PrintModule(*overlapped.program), HasSubstr("all-gather-start"));
  EXPECT_THAT(hlo::PrintModule(*in_order.program), Not(HasSubstr("all-gather-start")));
}

TEST(SimulateTest, NoOrderTakesMoreThanTheMemoryThereIs) {
  const Forecast in_order = Layers(64, /*overlap=*/false);
  const Forecast tight = Layers(64, /*overlap=*/true, 0, static_cast<double>(in_order.memory.total()));
  EXPECT_LE(tight.memory.total(), in_order.memory.total());
}

TEST(SimulateTest, ManyDevicesAreNoMoreWorkThanFew) {
  const Forecast few = Layers(8, true), many = Layers(4096, true, 8);
  EXPECT_EQ(few.program->InstructionCount(), many.program->InstructionCount());
  EXPECT_GT(many.timeline.waited_seconds, few.timeline.waited_seconds);  // over the network
}

TEST(SimulateTest, IsToldInEveryForm) {
  const Forecast forecast = Layers(64, true, 8);
  EXPECT_THAT(ToText(forecast, 3), HasSubstr("layers on 64 devices (h100, islands of 8)"));
  EXPECT_THAT(ToText(forecast, 3), HasSubstr("all-gather"));
  const json told = json::parse(ToJson(forecast, 1));
  EXPECT_EQ(told["devices"], 64);
  EXPECT_EQ(told["waits"].size(), 1u);
  EXPECT_NEAR(told["seconds"].get<double>(),
              told["compute_seconds"].get<double>() + told["waited_seconds"].get<double>(), 1e-12);
  double last = 0;
  const json trace = json::parse(ToTrace(forecast));
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_NEAR(last, forecast.timeline.seconds * 1e6, 1e-3);
}

TEST(SimulateTest, WhatDoesNotFitIsSaid) {
  EXPECT_THAT(ToText(Layers(64, true, 0, 1e6), 3), HasSubstr("it does not fit"));
}

}  // namespace
}  // namespace gangway::simulate
