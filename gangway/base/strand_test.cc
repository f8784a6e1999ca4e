#include "gangway/base/strand.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway {
namespace {

using testing::ElementsAre;

TEST(StrandTest, RunsAtOnceAndDoesNotNest) {
  Strand strand;
  std::vector<int> order;
  strand.Post([&] {
    EXPECT_TRUE(strand.InLoop());
    strand.Post([&] { order.push_back(2); });
    order.push_back(1);
  });
  EXPECT_FALSE(strand.InLoop());
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(StrandTest, OneTaskAtATimeFromManyThreads) {
  Strand strand;
  int64_t unguarded = 0;  // the strand is its guard
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        strand.Post([&] {
          ++unguarded;
          ++done;
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done, 8000);
  EXPECT_EQ(unguarded, 8000);
}

TEST(StrandTest, KeepsItsOrderOverASimulatedExecutor) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimExecutor executor(seed);
    Strand a(&executor), b(&executor);
    std::vector<int> of_a, of_b;
    for (int i = 0; i < 5; ++i) {
      a.Post([&of_a, &a, i] {
        EXPECT_TRUE(a.InLoop());
        of_a.push_back(i);
      });
      b.Post([&of_b, i] { of_b.push_back(i); });
    }
    executor.RunUntilIdle();
    EXPECT_THAT(of_a, ElementsAre(0, 1, 2, 3, 4)) << "seed " << seed;
    EXPECT_THAT(of_b, ElementsAre(0, 1, 2, 3, 4)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gangway
