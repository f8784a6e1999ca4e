#include "gangway/cost/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "gangway/cost/collective_time.h"
#include "gangway/cost/peak_memory.h"
#include "gangway/hlo/text.h"

namespace gangway::cost {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

// A multiplication of 64 x 64 takes 512 us, an all-reduce or permute of 1,000 B/s links what it moves; no latency.
Machine Slow() {
  Machine machine;
  machine.name = "slow";
  machine.device = {2.0 * 64 * 64 * 64 / 512e-6, 1e18, 1e18, 1e9};
  machine.link = {0, 1e9};
  machine.network = {0, 1e8};
  return machine;
}

std::unique_ptr<hlo::Module> Parse(const std::string& body, int devices = 4, const std::string& computations = "") {
  auto module = hlo::ParseModule(absl::StrCat("HloModule m, num_partitions=", devices, R"(
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
)",
                                              computations, "ENTRY e {\n", body, "}\n"));
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

constexpr double kProduct = 512e-6;
// 2 * 3/4 of 16 KiB at 1 GB/s.
constexpr double kReduce = 1.5 * 16384 / 1e9;

TEST(TimelineTest, ACollectiveHoldsUpWhatFollows) {
  const auto module = Parse(R"(
  x = f32[64,64] parameter(0)
  r = f32[64,64] all-reduce(x), replica_groups={}, to_apply=add
  ROOT d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)");
  const Timeline timeline = TimelineOf(*module, Slow());
  EXPECT_NEAR(timeline.seconds, kReduce + kProduct, 1e-9);
  EXPECT_NEAR(timeline.waited_seconds, kReduce, 1e-9);
  EXPECT_NEAR(timeline.compute_seconds, kProduct, 1e-9);
}

TEST(TimelineTest, WhatWasStartedRunsBesideOtherWork) {
  const auto module = Parse(R"(
  x = f32[64,64] parameter(0)
  s = f32[64,64] all-reduce-start(x), replica_groups={}, to_apply=add
  d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[64,64] all-reduce-done(s)
  ROOT t = (f32[64,64], f32[64,64]) tuple(d, r)
)");
  const Timeline timeline = TimelineOf(*module, Slow());
  EXPECT_NEAR(timeline.seconds, kProduct, 1e-9);
  EXPECT_NEAR(timeline.collective_seconds, kReduce, 1e-9);
  EXPECT_TRUE(timeline.waits.empty());
  EXPECT_THAT(timeline.spans, ElementsAre(Field(&Span::engine, Engine::kLink), Field(&Span::engine, Engine::kCompute)));
}

TEST(TimelineTest, LoopsCountTheirTurns) {
  const auto module = Parse(R"(
  x = f32[64,64] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[64,64]) tuple(z, x)
  ROOT w = (s32[], f32[64,64]) while(t), condition=cond, body=body
)",
                            4, R"(
cond {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT m = pred[] compare(i, n), direction=LT
}
body {
  s.1 = (s32[], f32[64,64]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  y = f32[64,64] get-tuple-element(s.1), index=1
  k = s32[] constant(1)
  j = s32[] add(i.1, k)
  d = f32[64,64] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  r = f32[64,64] all-reduce(d), replica_groups={}, to_apply=add
  ROOT u = (s32[], f32[64,64]) tuple(j, r)
}
)");
  const Timeline timeline = TimelineOf(*module, Slow());
  EXPECT_NEAR(timeline.seconds, 10 * (kProduct + kReduce), 1e-8);
  ASSERT_EQ(timeline.waits.size(), 1u);
  EXPECT_EQ(timeline.waits[0].runs, 10);
  EXPECT_NEAR(timeline.waits[0].seconds, 10 * kReduce, 1e-8);
}

CollectiveTime Time(const std::string& line, int64_t island_devices) {
  const auto module = Parse(absl::StrCat("  x = f32[64,64] parameter(0)\n  ROOT r = ", line, "\n"), 8);
  Machine machine = Slow();
  machine.island_devices = island_devices;
  return TimeOf(*module->entry()->root(), 8, machine);
}

TEST(CollectiveTimeTest, RingsInsideIslandsAndBetweenThem) {
  const std::string reduce = "f32[64,64] all-reduce(x), replica_groups={}, to_apply=add";
  EXPECT_NEAR(Time(reduce, 0).link_seconds, 2 * 7.0 / 8 * 16384 / 1e9, 1e-12);
  EXPECT_EQ(Time(reduce, 0).network_seconds, 0);
  // Two islands of four: 3/4 inside; half of a quarter between.
  EXPECT_NEAR(Time(reduce, 4).link_seconds, 2 * 3.0 / 4 * 16384 / 1e9, 1e-12);
  EXPECT_NEAR(Time(reduce, 4).network_seconds, 2 * 1.0 / 2 * 16384 / 4 / 1e8, 1e-12);
  // Groups inside islands know no network.
  EXPECT_EQ(Time("f32[64,64] all-reduce(x), replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=add", 4).network_seconds, 0);
}

TEST(CollectiveTimeTest, APermuteThatLeavesAnIslandGoesOverTheNetwork) {
  const std::string inside = "f32[64,64] collective-permute(x), source_target_pairs={{0,1},{1,0}}";
  const std::string across = "f32[64,64] collective-permute(x), source_target_pairs={{0,4},{1,0}}";
  EXPECT_EQ(Time(inside, 4).network_seconds, 0);
  EXPECT_NEAR(Time(across, 4).network_seconds, 16384 / 1e8, 1e-12);
  EXPECT_EQ(Time(across, 4).link_seconds, 0);
}

TEST(PeakMemoryTest, WhatWasStartedHoldsItsOperandsUntilItIsDone) {
  // y is read last by the start, and lives until the gather has landed: with its result and the product 4 + 16 + 4 KiB.
  const auto module = Parse(R"(
  x = f32[32,32] parameter(0)
  y = f32[32,32] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = (f32[32,32], f32[128,32]) all-gather-start(y), replica_groups={}, dimensions={0}
  d = f32[32,32] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[128,32] all-gather-done(s)
  ROOT m = f32[128,32] dot(g, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)");
  EXPECT_EQ(PeakMemoryOf(*module).temporary_bytes, (16 + 4 + 16 - 16) * 1024);
}

}  // namespace
}  // namespace gangway::cost
