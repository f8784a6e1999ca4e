#include "gangway/collective/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "gangway/collective/gang_keeper.h"

namespace gangway::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::shared_ptr<const Op> SumOver(int members, int64_t key = 0) {
  std::vector<int64_t> all(members);
  std::iota(all.begin(), all.end(), 0);
  Op op;
  op.key = key;
  return std::make_shared<const Op>(*MakeGroupOp(op, all, members, members));
}

Launch LaunchOf(int members) {
  Launch launch{7, "train_step", {}, {}};
  for (int m = 0; m < members; ++m) launch.participants.push_back(absl::StrCat("cpu:", m));
  return launch;
}

Contribution Bring(float* operand, float* result, int64_t count, std::function<void(const absl::Status&)> done) {
  return {{Array{DType::kF32, {count}, operand}}, {Array{DType::kF32, {count}, result}}, std::move(done)};
}

TEST(Gang, TheLastOneCompletesAll) {
  GangKeeper keeper;
  auto gang = keeper.MakeGang(LaunchOf(2));
  float in[] = {1, 2}, out[] = {0, 0};
  int done = 0;
  auto count = [&done](const absl::Status& status) { done += status.ok(); };
  gang->Join(0, SumOver(2), Bring(&in[0], &out[0], 1, count));
  EXPECT_EQ(done, 0);
  gang->Join(1, SumOver(2), Bring(&in[1], &out[1], 1, count));
  EXPECT_EQ(done, 2);
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(out[1], 3);
}

TEST(Gang, CollectivesAreMatchedByKeyAndIterationNotByArrival) {
  GangKeeper keeper;
  auto gang = keeper.MakeGang(LaunchOf(2));
  float in[] = {1, 10, 2, 20}, out[4] = {};
  auto ignore = [](const absl::Status&) {};
  gang->Join(0, SumOver(2, 1), Bring(&in[0], &out[0], 1, ignore));
  gang->Join(1, SumOver(2, 2), Bring(&in[3], &out[3], 1, ignore));
  gang->Join(0, SumOver(2, 2), Bring(&in[2], &out[2], 1, ignore));
  gang->Join(1, SumOver(2, 1), Bring(&in[1], &out[1], 1, ignore));
  EXPECT_THAT(out, ::testing::ElementsAre(11, 11, 22, 22));
}

TEST(Gang, PoisonEndsPendingAndLaterCollectives) {
  GangKeeper keeper;
  auto gang = keeper.MakeGang(LaunchOf(2));
  float in = 1, out = 0;
  absl::Status pending, later;
  gang->Join(0, SumOver(2), Bring(&in, &out, 1, [&](const absl::Status& s) { pending = s; }));
  gang->Poison(absl::InternalError("device cpu:1 fell over"));
  gang->Poison(absl::InternalError("second"));
  gang->Join(0, SumOver(2, 5), Bring(&in, &out, 1, [&](const absl::Status& s) { later = s; }));
  EXPECT_EQ(pending.message(), "device cpu:1 fell over");
  EXPECT_EQ(later, pending);
  EXPECT_EQ(gang->status(), pending);
}

TEST(Gang, MismatchedMembersFailTogether) {
  GangKeeper keeper;
  auto gang = keeper.MakeGang(LaunchOf(2));
  float in[4] = {}, out[4] = {};
  std::vector<absl::Status> seen;
  auto note = [&seen](const absl::Status& s) { seen.push_back(s); };
  gang->Join(0, SumOver(2), Bring(in, out, 1, note));
  gang->Join(1, SumOver(2), Bring(in + 1, out + 1, 2, note));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_THAT(std::string(seen[0].message()),
              HasSubstr("program train_step: all-reduce (key 0): members bring f32[1]"));
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(Gang, DeadlineNamesWhoIsMissing) {
  ManualClock clock;
  GangKeeper keeper({.helper_threads = 0, .deadline = absl::Seconds(10), .clock = &clock});
  auto gang = keeper.MakeGang(LaunchOf(3));
  float in = 1, out = 0;
  absl::Status seen;
  gang->Join(1, SumOver(3, 4), Bring(&in, &out, 1, [&](const absl::Status& s) { seen = s; }));
  clock.Advance(absl::Seconds(9));
  keeper.Sweep();
  EXPECT_TRUE(gang->status().ok());
  clock.Advance(absl::Seconds(2));
  keeper.Sweep();
  EXPECT_EQ(seen.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(seen.message()),
              AllOf(HasSubstr("program train_step, launch 7"), HasSubstr("all-reduce (key 4)"),
                    HasSubstr("waited 11s for cpu:0, cpu:2")));
}

TEST(Gang, AGangThatMovesIsNotOverItsDeadline) {
  ManualClock clock;
  GangKeeper keeper({.helper_threads = 0, .deadline = absl::Seconds(10), .clock = &clock});
  auto gang = keeper.MakeGang(LaunchOf(3));
  float in = 1, out = 0;
  for (int key = 0; key < 5; ++key) {
    gang->Join(0, SumOver(3, key), Bring(&in, &out, 1, [](const absl::Status&) {}));
    clock.Advance(absl::Seconds(9));
    keeper.Sweep();
    EXPECT_TRUE(gang->status().ok());
  }
}

TEST(Gang, DroppingTheKeeperEndsWhatWaits) {
  absl::Status seen;
  float in = 1, out = 0;
  std::shared_ptr<Gang> gang;
  {
    GangKeeper keeper;
    gang = keeper.MakeGang(LaunchOf(2));
    gang->Join(0, SumOver(2), Bring(&in, &out, 1, [&](const absl::Status& s) { seen = s; }));
  }
  EXPECT_EQ(seen.code(), absl::StatusCode::kCancelled);
}

TEST(Gang, WrongParticipantIsAnError) {
  GangKeeper keeper;
  auto gang = keeper.MakeGang(LaunchOf(2));
  float in = 1, out = 0;
  absl::Status seen;
  gang->Join(0, SumOver(4), Bring(&in, &out, 1, [&](const absl::Status& s) { seen = s; }));
  EXPECT_THAT(std::string(seen.message()), HasSubstr("is for 4 partitions"));
}

// Members that go on by themselves: each completion starts the next round, as a resumed program does.
TEST(Gang, ManyRoundsFromManyThreads) {
  constexpr int kMembers = 8, kRounds = 300;
  for (int64_t count : {1, 40000}) {  // small: one thread does the work; large: shared with a helper
    GangKeeper keeper({.helper_threads = 2});
    auto gang = keeper.MakeGang(LaunchOf(kMembers));
    const int rounds = count == 1 ? kRounds : 20;
    auto op = SumOver(kMembers);
    std::vector<std::vector<float>> in(kMembers, std::vector<float>(count, 1)), out = in;
    absl::BlockingCounter finished(kMembers);
    std::atomic<int> wrong = 0;
    std::vector<std::function<void(const absl::Status&)>> next(kMembers);
    std::vector<int> round(kMembers, 0);
    for (int m = 0; m < kMembers; ++m) {
      next[m] = [&, m](const absl::Status& status) {
        if (!status.ok() || out[m][count - 1] != kMembers) ++wrong;
        if (++round[m] == rounds) {
          finished.DecrementCount();
          return;
        }
        gang->Join(m, op, Bring(in[m].data(), out[m].data(), count, next[m]));
      };
    }
    std::vector<std::thread> threads;
    for (int m = 0; m < kMembers; ++m) {
      threads.emplace_back([&, m] { gang->Join(m, op, Bring(in[m].data(), out[m].data(), count, next[m])); });
    }
    finished.Wait();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace gangway::collective
