#include <string>
#include <vector>

#include "gangway/base/amounts.h"
#include "gangway/base/bounded_queue.h"
#include "gangway/base/clock.h"
#include "gangway/base/executor.h"
#include "gangway/base/future.h"
#include "gangway/base/status.h"
#include "gangway/base/strong_id.h"
#include "gtest/gtest.h"

namespace gangway {
namespace {

TEST(StatusTest, AnnotatePutsContextFirstAndKeepsTheCode) {
  absl::Status status = Annotate(absl::NotFoundError("no such axis"), "program p");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "program p: no such axis");
  EXPECT_TRUE(Annotate(absl::OkStatus(), "program p").ok());
}

absl::StatusOr<int> Half(int x) {
  if (x % 2 != 0) return absl::InvalidArgumentError("odd");
  return x / 2;
}

absl::StatusOr<int> Quarter(int x) {
  GW_ASSIGN_OR_RETURN(int half, Half(x));
  GW_ASSIGN_OR_RETURN_WITH(int quarter, Half(half), "second half");
  return quarter;
}

TEST(StatusTest, AssignOrReturnPassesValuesAndErrors) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(3).status().message(), "odd");
  EXPECT_EQ(Quarter(6).status().message(), "second half: odd");
}

TEST(AmountsTest, AreForPeople) {
  EXPECT_EQ(BytesText(12), "12 B");
  EXPECT_EQ(BytesText(1536), "1.50 KiB");
  EXPECT_EQ(BytesText(int64_t{5} << 30), "5.00 GiB");
  EXPECT_EQ(SecondsText(2.5e-5), "25.0 us");
  EXPECT_EQ(SecondsText(0.5), "500.00 ms");
}

TEST(FutureTest, CallbackRunsOnceWhetherSetBeforeOrAfter) {
  Promise<int> promise;
  std::vector<int> seen;
  promise.future().OnReady([&](const absl::StatusOr<int>& v) { seen.push_back(*v); });
  EXPECT_FALSE(promise.future().IsReady());
  promise.Set(3);
  promise.Set(4);  // ignored: the first one wins
  promise.future().OnReady([&](const absl::StatusOr<int>& v) { seen.push_back(*v); });
  EXPECT_EQ(seen, (std::vector<int>{3, 3}));
}

TEST(FutureTest, AwaitNamesWhatTimedOut) {
  Promise<int> promise;
  auto outcome = promise.future().Await(absl::Now() + absl::Milliseconds(1), "worker 3");
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(outcome.status().message(), "timed out waiting for worker 3");
}

TEST(ExecutorTest, ThreadExecutorKeepsOrderAndDrainsOnDestruction) {
  std::vector<int> order;
  {
    auto executor = MakeThreadExecutor("test");
    for (int i = 0; i < 100; ++i) executor->Post([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(ExecutorTest, SimExecutorIsDeterministicPerSeed) {
  auto run = [](uint64_t seed) {
    SimExecutor executor(seed);
    std::vector<int> order;
    for (int i = 0; i < 10; ++i) executor.Post([&order, i] { order.push_back(i); });
    EXPECT_EQ(executor.RunUntilIdle(), 10);
    return order;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

TEST(BoundedQueueTest, RefusesWhenFullAndWakesOnClose) {
  BoundedQueue<int> queue(1);
  int one = 1, two = 2;
  EXPECT_TRUE(queue.TryPush(one));
  EXPECT_FALSE(queue.TryPush(two));
  EXPECT_EQ(queue.Pop(absl::InfiniteFuture()), 1);
  queue.Close();
  EXPECT_EQ(queue.Pop(absl::InfiniteFuture()), std::nullopt);
  EXPECT_FALSE(queue.TryPush(two));
}

TEST(ClockTest, ManualClockMovesWhenTold) {
  ManualClock clock;
  absl::Time start = clock.Now();
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(clock.Now() - start, absl::Seconds(2));
}

using DeviceId = StrongId<struct DeviceIdTag, int>;
TEST(StrongIdTest, ComparesByValue) {
  EXPECT_LT(DeviceId(1), DeviceId(2));
  EXPECT_EQ(DeviceId(1), DeviceId(1));
}

}  // namespace
}  // namespace gangway
