#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gangway/cost/collective_bytes.h"
#include "gangway/cost/machine.h"
#include "gangway/cost/module_cost.h"
#include "gangway/cost/peak_memory.h"
#include "gangway/cost/trip_count.h"
#include "gangway/hlo/text.h"

namespace gangway::cost {
namespace {

std::unique_ptr<hlo::Module> Parse(const std::string& text) {
  auto module = hlo::ParseModule(text);
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

// while (i <direction> bound) { i += step; } from `start`; `config` is appended to the loop.
std::optional<int64_t> Trips(int start, const std::string& direction, int bound, int step,
                             const std::string& config = "") {
  std::unique_ptr<hlo::Module> module = Parse(absl::StrCat(R"(
HloModule m
c {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant()",
                                                           bound, R"()
  ROOT m = pred[] compare(i, n), direction=)",
                                                           direction, R"(
}
b {
  s.1 = (s32[], f32[4]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  x.1 = f32[4] get-tuple-element(s.1), index=1
  k = s32[] constant()",
                                                           step, R"()
  j = s32[] add(i.1, k)
  ROOT t = (s32[], f32[4]) tuple(j, x.1)
}
ENTRY e {
  x = f32[4] parameter(0)
  z = s32[] constant()",
                                                           start, R"()
  t.1 = (s32[], f32[4]) tuple(z, x)
  ROOT w = (s32[], f32[4]) while(t.1), condition=c, body=b)",
                                                           config, R"(
}
)"));
  return TripCount(*module->entry()->root());
}

TEST(TripCountTest, CountsFromStartStepAndBound) {
  EXPECT_EQ(Trips(0, "LT", 12, 1), 12);
  EXPECT_EQ(Trips(3, "LT", 12, 2), 5);
  EXPECT_EQ(Trips(0, "LE", 12, 1), 13);
  EXPECT_EQ(Trips(10, "GT", 0, -3), 4);
  EXPECT_EQ(Trips(0, "NE", 7, 1), 7);
  EXPECT_EQ(Trips(5, "LT", 5, 1), 0);
}

TEST(TripCountTest, TheConfigKnowsBetter) {
  EXPECT_EQ(Trips(0, "LT", 12, 1, R"(, backend_config={"known_trip_count":{"n":"7"}})"), 7);
}

std::string Collective(const std::string& line) {
  return absl::StrCat(R"(
HloModule m, num_partitions=8
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[64] parameter(0)
  ROOT r = )",
                      line, "\n}\n");
}

double Received(const std::string& line) {
  std::unique_ptr<hlo::Module> module = Parse(Collective(line));
  return TrafficOf(*module->entry()->root(), 8).bytes_received;
}

TEST(CollectiveBytesTest, RingModel) {
  const std::string pairs = ", channel_id=1, replica_groups=[4,2]<=[8], use_global_device_ids=true";
  EXPECT_EQ(Received("f32[64] all-reduce(x), to_apply=add" + pairs), 256);
  EXPECT_EQ(Received("f32[128] all-gather(x), dimensions={0}" + pairs), 256);
  EXPECT_EQ(Received("f32[32] reduce-scatter(x), dimensions={0}, to_apply=add" + pairs), 128);
  EXPECT_EQ(Received("f32[64] all-to-all(x), dimensions={0}, channel_id=1, replica_groups=[2,4]<=[8]"), 192);
  EXPECT_EQ(Received("f32[64] collective-permute(x), channel_id=1, source_target_pairs={{0,1}}"), 256);
  EXPECT_EQ(
      Received(
          "f32[64] all-reduce(x), channel_id=1, replica_groups=[8,1]<=[8], use_global_device_ids=true, to_apply=add"),
      0);
}

TEST(ModuleCostTest, OfBranchesTheDearest) {
  std::unique_ptr<hlo::Module> module = Parse(R"(
HloModule m
cheap { p = f32[8,8] parameter(0) ROOT n = f32[8,8] negate(p) }
dear { q = f32[8,8] parameter(0) ROOT d = f32[8,8] dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
ENTRY e {
  x = f32[8,8] parameter(0)
  c = pred[] parameter(1)
  ROOT r = f32[8,8] conditional(c, x, x), true_computation=cheap, false_computation=dear
}
)");
  ModuleCost cost = CostOf(*module);
  EXPECT_EQ(cost.flops, 2 * 8 * 8 * 8);
  EXPECT_EQ(cost.matmul_flops, cost.flops);
}

TEST(PeakMemoryTest, ViewsAndFusedValuesTakeNothing) {
  std::unique_ptr<hlo::Module> module = Parse(R"(
HloModule m
ENTRY e {
  x = f32[1024] parameter(0)
  r = f32[32,32] reshape(x)
  a = f32[32,32] negate(r)
  b = f32[32,32] exponential(a)
  ROOT d = f32[32,32] dot(b, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)");
  PeakMemory memory = PeakMemoryOf(*module);
  EXPECT_EQ(memory.argument_bytes, 4096);
  EXPECT_EQ(memory.output_bytes, 4096);
  EXPECT_EQ(memory.temporary_bytes, 4096);  // b only
}

// n chains of products, each to a number, which are added up.
std::string ChainsOfProducts(int n) {
  std::string text = "HloModule m\nadd { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }\n";
  absl::StrAppend(&text, "ENTRY e {\n  z = f32[] constant(0)\n  s0 = f32[] parameter(0)\n");
  constexpr char kDims[] = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
  for (int i = 1; i <= n; ++i) {
    absl::StrAppendFormat(&text, "  x%d = f32[64,64] parameter(%d)\n", i, i);
    absl::StrAppendFormat(&text, "  a%d = f32[64,64] dot(x%d, x%d), %s\n", i, i, i, kDims);
    absl::StrAppendFormat(&text, "  b%d = f32[64,64] dot(a%d, a%d), %s\n", i, i, i, kDims);
    absl::StrAppendFormat(&text, "  r%d = f32[] reduce(b%d, z), dimensions={0,1}, to_apply=add\n", i, i);
    absl::StrAppendFormat(&text, "  %ss%d = f32[] add(s%d, r%d)\n", i == n ? "ROOT " : "", i, i - 1, i);
  }
  return text + "}\n";
}

TEST(PeakMemoryTest, ChainsOneAfterTheOtherTakeLessThanSideBySide) {
  std::unique_ptr<hlo::Module> module = Parse(ChainsOfProducts(4));
  EXPECT_GT(PeakMemoryOf(*module, OrderKind::kBreadthFirst).temporary_bytes, 4 * 64 * 64 * 4);
  EXPECT_LE(PeakMemoryOf(*module, OrderKind::kDepthFirst).temporary_bytes, 2 * 64 * 64 * 4 + 64);
  EXPECT_EQ(LeanerOrder(*module), OrderKind::kDepthFirst);
  EXPECT_EQ(LeanerOrder(*Parse(ChainsOfProducts(1))), OrderKind::kBreadthFirst);
}

TEST(OrderTest, EveryOperationComesAfterWhatItReads) {
  std::unique_ptr<hlo::Module> module = Parse(ChainsOfProducts(3));
  for (OrderKind kind : {OrderKind::kAsWritten, OrderKind::kBreadthFirst, OrderKind::kDepthFirst}) {
    Places place;
    for (const hlo::Instruction* i : OrderOf(*module->entry(), kind)) {
      for (const hlo::Instruction* operand : i->operands()) EXPECT_TRUE(place.contains(operand)) << i->name();
      EXPECT_TRUE(place.emplace(i, place.size()).second) << i->name();
    }
    EXPECT_EQ(static_cast<int64_t>(place.size()), module->entry()->size());
  }
}

TEST(OrderTest, LongChainsOfFusedOperationsAreNoBurden) {
  std::string text = "HloModule m\nENTRY e {\n  s0 = f32[8] parameter(0)\n";
  constexpr int kTerms = 20000;
  for (int i = 1; i <= kTerms; ++i) {
    absl::StrAppendFormat(&text, "  x%d = f32[8] parameter(%d)\n  %ss%d = f32[8] add(s%d, x%d)\n", i, i,
                          i == kTerms ? "ROOT " : "", i, i - 1, i);
  }
  std::unique_ptr<hlo::Module> module = Parse(text + "}\n");
  EXPECT_EQ(static_cast<int64_t>(OrderOf(*module->entry(), OrderKind::kDepthFirst).size()), module->entry()->size());
}

TEST(PeakMemoryTest, SquaresAreFusedWithWhatTheySquare) {
  std::unique_ptr<hlo::Module> module = Parse(R"(
HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[32] parameter(0)
  y = f32[32,32] broadcast(x), dimensions={0}
  z = f32[32,32] broadcast(x), dimensions={1}
  d = f32[32,32] subtract(y, z)
  s = f32[32,32] multiply(d, d)
  zero = f32[] constant(0)
  ROOT r = f32[32] reduce(s, zero), dimensions={1}, to_apply=add
}
)");
  EXPECT_EQ(PeakMemoryOf(*module).temporary_bytes, 0);
}

int64_t Temporary(const std::string& body) {
  const std::string head =
      "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n";
  return PeakMemoryOf(*Parse(head + "ENTRY e {\n" + body + "}\n")).temporary_bytes;
}

TEST(PeakMemoryTest, JoinedAndCheapValuesAreMadeWhereTheyAreRead) {
  EXPECT_EQ(Temporary(R"(
  x = f32[32,32] parameter(0)
  n = f32[32,32] negate(x)
  y = f32[32,1,32] reshape(x)
  z = f32[32,1,32] reshape(n)
  ROOT r = f32[32,2,32] concatenate(y, z), dimensions={1}
)"),
            0);
  EXPECT_EQ(Temporary(R"(
  x = f32[32,32] parameter(0)
  y = f32[32,32] parameter(1)
  d = f32[32,32] subtract(x, y)
  n = f32[32,32] negate(d)
  p = f32[32,32] multiply(d, x)
  ROOT t = (f32[32,32], f32[32,32]) tuple(n, p)
)"),
            0);
  EXPECT_EQ(Temporary(R"(
  x = f32[64,32] parameter(0)
  t = f32[32,64] transpose(x), dimensions={1,0}
  ROOT r = f32[32,32] dot(t, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)"),
            0);
}

TEST(PeakMemoryTest, DearValuesOfSeveralReadersAreKept) {
  EXPECT_EQ(Temporary(R"(
  x = f32[32,32] parameter(0)
  d = f32[32,32] exponential(x)
  n = f32[32,64] concatenate(d, x), dimensions={1}
  p = f32[64,32] concatenate(x, d), dimensions={0}
  ROOT t = (f32[32,64], f32[64,32]) tuple(n, p)
)"),
            4096);
}

TEST(PeakMemoryTest, ResultsTakeTheMemoryOfWhatEndsInThem) {
  std::unique_ptr<hlo::Module> module = Parse(R"(
HloModule m
ENTRY e {
  w = f32[32,32] parameter(0)
  g = f32[32,32] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  rate = f32[] constant(0.1)
  rates = f32[32,32] broadcast(rate), dimensions={}
  step = f32[32,32] multiply(g, rates)
  ROOT r = f32[32,32] subtract(w, step)
}
)");
  EXPECT_EQ(PeakMemoryOf(*module).temporary_bytes, 0);  // the product lies where the result will
}

TEST(PeakMemoryTest, LoopsUpdateTheirStateInPlace) {
  std::unique_ptr<hlo::Module> module = Parse(R"(
HloModule m
less {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(64)
  ROOT l = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  stack = f32[64,64] get-tuple-element(s), index=1
  zero = s32[] constant(0)
  one = s32[] constant(1)
  x = f32[] constant(3)
  row = f32[1,64] broadcast(x), dimensions={}
  next = f32[64,64] dynamic-update-slice(stack, row, i, zero)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[64,64]) tuple(j, next)
}
ENTRY e {
  start = (s32[], f32[64,64]) parameter(0)
  ROOT w = (s32[], f32[64,64]) while(start), condition=less, body=step
}
)");
  EXPECT_LT(PeakMemoryOf(*module).temporary_bytes, 64 * 64 * 4);
}

TEST(PeakMemoryTest, DonatedArgumentsHoldResults) {
  std::unique_ptr<hlo::Module> module = Parse(R"(
HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[1024] parameter(0)
  ROOT y = f32[1024] negate(x)
}
)");
  EXPECT_EQ(PeakMemoryOf(*module).total(), 4096);
}

TEST(MachineTest, FasterLinksTakeLessTime) {
  ModuleCost cost;
  cost.flops = cost.matmul_flops = 1e12;
  cost.collectives["all-reduce"] = {1, 1, 1e9};
  TimeEstimate cpu = EstimateTime(cost, *MachineByName("cpu")), h100 = EstimateTime(cost, *MachineByName("h100"));
  EXPECT_GT(cpu.total(), h100.total());
  EXPECT_GT(h100.collective_seconds, h100.compute_seconds);
  EXPECT_FALSE(MachineByName("abacus").ok());
}

}  // namespace
}  // namespace gangway::cost
