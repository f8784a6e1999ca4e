// Programs that do not fit into the devices' memory wait, over a cluster in simulated time.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/sim_cluster.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::DeviceId;
using controller::ExecuteOptions;
using controller::ProgramId;
using controller::RuntimeController;
using controller::SessionId;
using testing::HasSubstr;

constexpr int kElements = 1024;
constexpr int64_t kArray = kElements * 4;  // bytes on each device

class MemoryTest : public testing::TestWithParam<uint64_t> {
 protected:
  // Room for that many arrays on each of two devices.
  void Start(double arrays) {
    cluster_.AddWorker("w0", {.devices = 2, .device_memory = static_cast<int64_t>(arrays * kArray)});
    cluster_.RunFor(absl::Milliseconds(10));
  }
  SessionId Open(std::string name) {
    return cluster_.On([&](RuntimeController& c) { return c.OpenSession({name, "", 1}); });
  }
  // x -> x + 1.
  ProgramId Compile(SessionId session, const std::string& words = "") {
    controller::CompileRequest request;
    request.artifact = absl::StrCat("elements=", kElements, " ", words);
    request.devices = {DeviceId(0), DeviceId(1)};
    request.options.num_partitions = 2;
    auto [id, ready] = cluster_.On([&](RuntimeController& c) { return c.Compile(session, request); });
    cluster_.RunFor(absl::Milliseconds(10));
    EXPECT_TRUE(ready.IsReady() && ready.Await(absl::Now(), "").ok());
    return id;
  }
  absl::StatusOr<ArrayId> Make(SessionId session, int32_t value) {
    return cluster_.Put(session, Shape(DType::kS32, {kElements}), {DeviceId(0), DeviceId(1)}, value);
  }
  absl::StatusOr<ArrayId> Run(SessionId session, ProgramId program, ArrayId argument) {
    auto result = cluster_.On([&](RuntimeController& c) { return c.Execute(session, program, {argument}, {}); });
    if (!result.ok()) return result.status();
    return result->outputs[0];
  }
  void Release(ArrayId array) {
    cluster_.On([&](RuntimeController& c) { return c.Release(array), 0; });
  }
  absl::StatusOr<int32_t> Value(ArrayId array, absl::Duration patience = absl::Seconds(1)) {
    return cluster_.Value(array, 1, patience);
  }
  int64_t Waiting() {
    return cluster_.On([](RuntimeController& c) { return c.Stats(); }).waiting_for_memory;
  }
  controller::DeviceMemory Memory() {
    cluster_.RunFor(absl::Seconds(1));
    return cluster_.On([](RuntimeController& c) { return c.Memory(); })[1];
  }

  SimCluster cluster_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Seeds, MemoryTest, testing::Range<uint64_t>(0, 10));

TEST_P(MemoryTest, AProgramWaitsForAnotherSessionsMemory) {
  Start(3);
  SessionId a = Open("a"), b = Open("b");
  ProgramId program = Compile(a);
  ASSERT_TRUE(Compile(b) == program);
  ArrayId held = *Make(a, 0), other = *Make(a, 0), x = *Make(b, 5);
  ArrayId y = *Run(b, program, x);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Value(y).status()));
  EXPECT_EQ(Waiting(), 1);
  EXPECT_EQ(Memory().reserved, 3 * kArray);
  EXPECT_EQ(*Value(held), 0) << "others go on";
  Release(held);
  EXPECT_EQ(*Value(y), 6);
  EXPECT_EQ(Waiting(), 0);
  const controller::DeviceMemory memory = Memory();
  EXPECT_EQ(memory.reserved, 3 * kArray);
  EXPECT_EQ(memory.in_use, 3 * kArray);
  EXPECT_EQ(memory.limit, 3 * kArray);
  for (ArrayId array : {other, x, y}) Release(array);
  EXPECT_EQ(Memory().reserved, 0);
  EXPECT_EQ(Memory().in_use, 0);
}

TEST_P(MemoryTest, AfterAWhileItFailsAndNamesWhoHasTheMemory) {
  Start(2);
  SessionId a = Open("greedy"), b = Open("b");
  ProgramId program = Compile(b);
  ASSERT_TRUE(Make(a, 0).ok());
  ArrayId x = *Make(b, 5);
  ArrayId y = *Run(b, program, x), z = *Run(b, program, y);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Value(z, absl::Seconds(50)).status()));
  const absl::Status status = Value(z, absl::Seconds(15)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("program program: after 1m of waiting: 4.00 KiB do not fit on device 0 of worker w0"));
  EXPECT_THAT(message, HasSubstr("session greedy 4.00 KiB"));
  EXPECT_EQ(*Value(x), 5) << "the session goes on";
  EXPECT_EQ(Waiting(), 0);
}

TEST_P(MemoryTest, WhatNeverFitsFailsAtOnce) {
  Start(0.5);
  SessionId session = Open("a");
  EXPECT_THAT(std::string(Make(session, 0).status().message()),
              HasSubstr("takes 4.00 KiB on each device; device 0 of worker w0 has 2.00 KiB"));
}

TEST_P(MemoryTest, AWaitingSessionsOwnFreesAreNotHeldBack) {
  Start(2);
  SessionId session = Open("a");
  ProgramId program = Compile(session);
  // All submitted before anything ran: each result needs the memory of the last but one.
  ArrayId last = *Make(session, 0);
  for (int i = 0; i < 10; ++i) {
    ArrayId next = *Run(session, program, last);
    Release(last);
    last = next;
  }
  EXPECT_EQ(*Value(last), 10);
}

TEST_P(MemoryTest, DonatedMemoryIsUsedAgain) {
  Start(1);
  SessionId session = Open("a");
  ProgramId program = Compile(session, "|donate=0");
  ArrayId last = *Make(session, 0);
  for (int i = 0; i < 10; ++i) last = *Run(session, program, last);
  EXPECT_EQ(*Value(last), 10);
  EXPECT_EQ(Memory().reserved, kArray);
}

TEST_P(MemoryTest, ViewsHoldTheSameMemory) {
  Start(1);
  SessionId session = Open("a");
  ArrayId whole = *Make(session, 7);
  auto parts = cluster_.On([&](RuntimeController& c) { return c.Disassemble(session, whole); });
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(Memory().reserved, kArray);
  Release(whole);
  EXPECT_EQ(Memory().reserved, kArray);
  for (ArrayId part : *parts) Release(part);
  EXPECT_EQ(Memory().reserved, 0);
}

TEST_P(MemoryTest, ASessionThatClosesWhileItWaitsLeavesNothing) {
  Start(2);
  SessionId a = Open("a"), b = Open("b");
  ProgramId keeps = Compile(b), donates = Compile(b, "|donate=0");
  ArrayId held = *Make(a, 0), x = *Make(b, 5);
  ArrayId y = *Run(b, keeps, x);    // waits
  ArrayId z = *Run(b, donates, x);  // behind it
  EXPECT_TRUE(absl::IsDeadlineExceeded(Value(y).status()));
  (void)z;
  cluster_.On([&](RuntimeController& c) { return c.CloseSession(b), 0; });
  EXPECT_EQ(Memory().reserved, kArray);
  Release(held);
  EXPECT_EQ(Memory().reserved, 0);
  EXPECT_EQ(cluster_.StoreBuffers(), 0);
  EXPECT_EQ(Waiting(), 0);
}

TEST_P(MemoryTest, AWorkerThatComesBackIsEmpty) {
  Start(1);
  SessionId session = Open("a");
  ArrayId lost = *Make(session, 1);
  cluster_.RunFor(absl::Milliseconds(10));
  cluster_.Kill("w0");
  cluster_.RunFor(absl::Milliseconds(10));
  Start(1);
  EXPECT_EQ(*Value(*Make(session, 2)), 2);
  Release(lost);
  EXPECT_EQ(Memory().reserved, kArray);
}

}  // namespace
}  // namespace gangway
