// Programs on several devices at once: hosted collectives, their order, their failures.
#include "gangway/collective/gang.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/device/cts/testing.h"

namespace gangway::device {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GangTest : public ConformanceTest {
 protected:
  // Runs a one-parameter program; input d is base + d everywhere.
  std::vector<std::vector<float>> RunOn(int devices, absl::string_view text, int64_t count) {
    Start(devices);
    auto program = Compile(text, devices);
    std::vector<std::vector<BufferRef>> inputs;
    for (int d = 0; d < devices; ++d) {
      std::vector<float> values(count);
      for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(100 * d + i);
      inputs.push_back({Put(d, DType::kF32, {count}, values)});
    }
    std::vector<std::vector<float>> results;
    for (Execution& execution : LaunchAll(*program, inputs)) {
      EXPECT_EQ(Outcome(execution.done), absl::OkStatus());
      results.push_back(Get<float>(execution.outputs[0]));
    }
    return results;
  }
};
INSTANTIATE_TEST_SUITE_P(Cts, GangTest, ::testing::ValuesIn(Backends()), BackendName);

std::string OneCall(absl::string_view target, absl::string_view operand, absl::string_view result,
                    absl::string_view attributes) {
  return absl::StrCat("HloModule m\nENTRY e {\n  p = ", operand, " parameter(0)\n  ROOT r = ",
                      HostedCall(target, result, operand, "p", absl::StrCat("key = 1 : i64, ", attributes)), "\n}\n");
}

TEST_P(GangTest, PartitionId) {
  Start(3);
  auto program = Compile(
      "HloModule m\nENTRY e {\n  ROOT r = u32[] custom-call(), custom_call_target=\"gangway.partition_id\", "
      "api_version=API_VERSION_TYPED_FFI\n}\n",
      3);
  auto executions = LaunchAll(*program, {{}, {}, {}});
  for (uint32_t d = 0; d < 3; ++d) EXPECT_THAT(Get<uint32_t>(executions[d].outputs[0]), ElementsAre(d));
}

TEST_P(GangTest, AllReduceInGroups) {
  auto results = RunOn(4,
                       OneCall("all_reduce", "f32[2]{0}", "f32[2]{0}",
                               "kind = \"sum\", groups = array<i64: 0, 2, 1, 3>, group_size = 2 : i64"),
                       2);
  EXPECT_THAT(results[0], ElementsAre(200, 202));
  EXPECT_THAT(results[2], ElementsAre(200, 202));
  EXPECT_THAT(results[1], ElementsAre(400, 402));
  EXPECT_THAT(results[3], ElementsAre(400, 402));
}

TEST_P(GangTest, AllReduceOfMax) {
  auto results = RunOn(2, OneCall("all_reduce", "f32[2]{0}", "f32[2]{0}", "kind = \"max\", " + OneGroup(2)), 2);
  EXPECT_THAT(results, Each(ElementsAre(100, 101)));
}

TEST_P(GangTest, AllGather) {
  auto results = RunOn(2, OneCall("all_gather", "f32[2]{0}", "f32[4]{0}", "dimension = 0 : i64, " + OneGroup(2)), 2);
  EXPECT_THAT(results, Each(ElementsAre(0, 1, 100, 101)));
}

TEST_P(GangTest, ReduceScatter) {
  auto results = RunOn(
      2, OneCall("reduce_scatter", "f32[4]{0}", "f32[2]{0}", "kind = \"sum\", dimension = 0 : i64, " + OneGroup(2)), 4);
  EXPECT_THAT(results[0], ElementsAre(100, 102));
  EXPECT_THAT(results[1], ElementsAre(104, 106));
}

TEST_P(GangTest, AllToAll) {
  auto results = RunOn(2,
                       OneCall("all_to_all", "f32[4]{0}", "f32[4]{0}",
                               "dimension = 0 : i64, concat_dimension = 0 : i64, " + OneGroup(2)),
                       4);
  EXPECT_THAT(results[0], ElementsAre(0, 1, 100, 101));
  EXPECT_THAT(results[1], ElementsAre(2, 3, 102, 103));
}

TEST_P(GangTest, CollectivePermuteWithZeros) {
  auto results = RunOn(3, OneCall("collective_permute", "f32[2]{0}", "f32[2]{0}", "pairs = array<i64: 0, 1, 1, 2>"), 2);
  EXPECT_THAT(results[0], ElementsAre(0, 0));
  EXPECT_THAT(results[1], ElementsAre(0, 1));
  EXPECT_THAT(results[2], ElementsAre(100, 101));
}

TEST_P(GangTest, CollectiveBroadcast) {
  auto results = RunOn(
      3, OneCall("collective_broadcast", "f32[2]{0}", "f32[2]{0}", "groups = array<i64: 2, 0>, group_size = 2 : i64"),
      2);
  EXPECT_THAT(results[0], ElementsAre(200, 201));
  EXPECT_THAT(results[1], ElementsAre(0, 0));
  EXPECT_THAT(results[2], ElementsAre(200, 201));
}

// A sum over the devices of an array that each gives away.
std::string DonatingSum(int devices) {
  return "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\nENTRY e {\n  p = f32[65536]{0} parameter(0)\n"
         "  s = " +
         HostedCall("all_reduce", "f32[65536]{0}", "f32[65536]{0}", "p",
                    "key = 1 : i64, kind = \"sum\", " + OneGroup(devices)) +
         "\n  h = f32[] constant(0.5)\n  hs = f32[65536]{0} broadcast(h), dimensions={}\n"
         "  ROOT r = f32[65536]{0} multiply(s, hs)\n}\n";
}

// If it were given away, the copies would come when the launch that took it is over, and the launch waits for devices
// that wait for the copies.
TEST_P(GangTest, WhatIsStillCopiedToTheOthersIsGivenAwayLater) {
  Start(4);
  auto program = Compile(DonatingSum(4), 4);
  const std::vector<float> ones(65536, 1);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::vector<BufferRef>> inputs = {{Put(0, DType::kF32, {65536}, ones)}};
    for (int d = 1; d < 4; ++d) inputs.push_back({inputs[0][0]->CopyTo(device(d))});
    for (const Execution& execution : LaunchAll(*program, inputs)) ASSERT_EQ(Outcome(execution.done), absl::OkStatus());
  }
}

// The same by way of the host.
TEST_P(GangTest, WhatIsStillReadIsGivenAwayLater) {
  Start(2);
  auto program = Compile(DonatingSum(2), 2);
  const std::vector<float> ones(65536, 1);
  for (int round = 0; round < 100; ++round) {
    BufferRef value = Put(0, DType::kF32, {65536}, ones);
    std::vector<float> read(65536);
    const Future<Unit> there = value->ToHost(read.data());
    auto gang = MakeGang(2);
    Execution first = program->Execute(device(0), {value}, OptionsFor(gang, 0));
    ASSERT_EQ(Outcome(there), absl::OkStatus());
    Execution second = program->Execute(device(1), {Put(1, DType::kF32, {65536}, read)}, OptionsFor(gang, 1));
    ASSERT_EQ(Outcome(first.done), absl::OkStatus());
    EXPECT_EQ(Get<float>(second.outputs[0])[65535], 1);
  }
}

TEST_P(GangTest, OneCallMovesManyArrays) {
  Start(2);
  auto program =
      Compile("HloModule m\nENTRY e {\n  a = f32[2]{0} parameter(0)\n  b = s32[3]{0} parameter(1)\n  ROOT r = " +
                  HostedCall("all_reduce", "(f32[2]{0}, s32[3]{0})", "f32[2]{0}, s32[3]{0}", "a, b",
                             "key = 1 : i64, kind = \"sum\", " + OneGroup(2)) +
                  "\n}\n",
              2);
  std::vector<std::vector<BufferRef>> inputs;
  for (int d = 0; d < 2; ++d) {
    inputs.push_back({Put<float>(d, DType::kF32, {2}, {1.0f + d, 2}), Put<int32_t>(d, DType::kS32, {3}, {d, 5, 6})});
  }
  auto executions = LaunchAll(*program, inputs);
  EXPECT_THAT(Get<float>(executions[1].outputs[0]), ElementsAre(3, 4));
  EXPECT_THAT(Get<int32_t>(executions[1].outputs[1]), ElementsAre(1, 10, 12));
}

TEST_P(GangTest, PackedElementsAreExchanged) {
  Start(2);
  auto program = Compile(OneCall("all_gather", "s4[3]{0}", "s4[6]{0}", "dimension = 0 : i64, " + OneGroup(2)), 2);
  std::vector<std::vector<BufferRef>> inputs;
  for (int8_t d = 0; d < 2; ++d) inputs.push_back({Put<int8_t>(d, DType::kS4, {3}, {d, -8, 7})});
  auto executions = LaunchAll(*program, inputs);
  EXPECT_THAT(Get<int8_t>(executions[0].outputs[0]), ElementsAre(0, -8, 7, 1, -8, 7));
}

// Adds 1 and sums over the devices, `steps` times.
std::string Loop(int devices, int steps) {
  return absl::StrCat(
      R"(HloModule loop
body {
  t = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[4]{0} get-tuple-element(t), index=1
  r = )",
      HostedCall("all_reduce", "f32[4]{0}", "f32[4]{0}", "x", "key = 1 : i64, kind = \"max\", " + OneGroup(devices)),
      R"(
  one = f32[] constant(1)
  b = f32[4]{0} broadcast(one), dimensions={}
  y = f32[4]{0} add(r, b)
  c = s32[] constant(1)
  j = s32[] add(i, c)
  ROOT o = (s32[], f32[4]{0}) tuple(j, y)
}
cond {
  t = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant()",
      steps, R"()
  ROOT lt = pred[] compare(i, n), direction=LT
}
ENTRY e {
  p = f32[4]{0} parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[4]{0}) tuple(z, p)
  w = (s32[], f32[4]{0}) while(t), condition=cond, body=body
  ROOT r = f32[4]{0} get-tuple-element(w), index=1
}
)");
}

TEST_P(GangTest, CollectivesInLoopsMeetByIteration) {
  auto results = RunOn(4, Loop(4, 50), 4);
  EXPECT_THAT(results, Each(ElementsAre(350, 351, 352, 353)));
}

TEST_P(GangTest, LaunchesQueuedOneAfterTheOther) {
  Start(4);
  auto program = Compile(Loop(4, 3), 4);
  std::vector<std::vector<BufferRef>> values;
  for (int d = 0; d < 4; ++d) values.push_back({Put<float>(d, DType::kF32, {4}, {0, 0, 0, 0})});
  std::vector<Execution> last;
  for (int launch = 0; launch < 50; ++launch) {
    last = LaunchAll(*program, values);
    for (int d = 0; d < 4; ++d) values[d] = last[d].outputs;
  }
  for (Execution& execution : last) EXPECT_THAT(Get<float>(execution.outputs[0]), Each(150.0f));
}

// Independent collectives beside real work, on more devices than cores. The plugin runs them at the same time and in
// another order on every device: handlers that block their thread hang here at once.
TEST_P(GangTest, IndependentCollectivesOnManyDevicesDoNotDeadlock) {
  constexpr int kDevices = 16, kBranches = 8;
  const int size = GetParam().name == "sim" ? 8 : 128;
  const std::string type = absl::StrCat("f32[", size, ",", size, "]{1,0}");
  std::string text = absl::StrCat("HloModule branches\nENTRY e {\n  p = ", type, " parameter(0)\n");
  std::string sum = "p";
  for (int b = 0; b < kBranches; ++b) {
    absl::StrAppend(&text, "  scale", b, " = f32[] constant(", b + 1, ")\n  w", b, " = ", type, " broadcast(scale", b,
                    "), dimensions={}\n  m", b, " = ", type, " multiply(p, w", b, ")\n  d", b, " = ", type, " dot(m", b,
                    ", p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  h", b, " = ", type, " tanh(d", b,
                    ")\n  r", b, " = ",
                    HostedCall("all_reduce", type, type, absl::StrCat("h", b),
                               absl::StrCat("key = ", b, " : i64, kind = \"sum\", ", OneGroup(kDevices))),
                    "\n");
  }
  for (int b = 0; b < kBranches; ++b) {
    const std::string next = absl::StrCat("t", b);
    absl::StrAppend(&text, "  ", b == kBranches - 1 ? "ROOT " : "", next, " = ", type, " add(", sum, ", r", b, ")\n");
    sum = next;
  }
  absl::StrAppend(&text, "}\n");

  Start(kDevices);
  auto program = Compile(text, kDevices);
  const std::vector<float> values(size * size, 10.0f);
  for (int run = 0; run < (GetParam().name == "sim" ? 2 : 10); ++run) {
    std::vector<std::vector<BufferRef>> inputs;
    for (int d = 0; d < kDevices; ++d) inputs.push_back({Put(d, DType::kF32, {size, size}, values)});
    auto executions = LaunchAll(*program, inputs);
    for (Execution& execution : executions) {
      ASSERT_EQ(Outcome(execution.done), absl::OkStatus());
      // tanh saturates: every branch is the number of devices.
      ASSERT_THAT(Get<float>(execution.outputs[0]), Each(10.0f + kBranches * kDevices));
    }
  }
}

TEST_P(GangTest, OneFailedDeviceFailsTheGangAtOnce) {
  Start(4);
  auto program = Compile(Loop(4, 10), 4);
  std::vector<std::vector<BufferRef>> inputs;
  for (int d = 0; d < 4; ++d) inputs.push_back({Put<float>(d, DType::kF32, {4}, {0, 0, 0, 0})});
  inputs[2] = {Put<float>(2, DType::kF32, {3}, {0, 0, 0})};
  const absl::Time start = absl::Now();
  for (Execution& execution : LaunchAll(*program, inputs)) {
    const absl::Status status = Outcome(execution.done);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("program_under_test"), HasSubstr(absl::StrCat(client_->platform(), ":2"))))
        << status;
    EXPECT_FALSE(Outcome(execution.outputs[0]->Ready()).ok());
  }
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  // The devices live on.
  inputs[2] = {Put<float>(2, DType::kF32, {4}, {0, 0, 0, 0})};
  for (Execution& execution : LaunchAll(*program, inputs)) EXPECT_EQ(Outcome(execution.done), absl::OkStatus());
}

TEST_P(GangTest, ADeviceThatNeverComesIsNamed) {
  Start(3);
  ManualClock clock;
  collective::GangKeeper keeper({.deadline = absl::Seconds(30), .clock = &clock});
  auto program = Compile(Loop(3, 2), 3);
  auto gang = keeper.MakeGang({9, "program_under_test", {"worker 0 cpu:0", "worker 0 cpu:1", "worker 1 cpu:0"}, {}});
  std::vector<Execution> executions;
  for (int d = 0; d < 2; ++d) {
    executions.push_back(
        program->Execute(device(d), {Put<float>(d, DType::kF32, {4}, {0, 0, 0, 0})}, OptionsFor(gang, d)));
  }
  // The meeting starts when the first device arrives, so time moves until it is over.
  while (gang->status().ok()) {
    clock.Advance(absl::Seconds(31));
    keeper.Sweep();
    absl::SleepFor(absl::Milliseconds(5));
  }
  for (Execution& execution : executions) {
    const absl::Status status = Outcome(execution.done);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(status.message()), HasSubstr("worker 1 cpu:0"));
  }
}

TEST_P(GangTest, WrongGroupsAreAnErrorThatNamesTheOp) {
  Start(2);
  auto program = Compile(OneCall("all_reduce", "f32[2]{0}", "f32[2]{0}",
                                 "kind = \"sum\", groups = array<i64: 0, 7>, group_size = 2 : i64"),
                         2);
  std::vector<std::vector<BufferRef>> inputs;
  for (int d = 0; d < 2; ++d) inputs.push_back({Put<float>(d, DType::kF32, {2}, {1, 2})});
  for (Execution& execution : LaunchAll(*program, inputs)) {
    EXPECT_THAT(std::string(Outcome(execution.done).message()),
                AllOf(HasSubstr("all-reduce (key 1)"), HasSubstr("partition 7 is not one of 2")));
  }
}

}  // namespace
}  // namespace gangway::device
