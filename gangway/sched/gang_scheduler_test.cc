#include "gangway/sched/gang_scheduler.h"

#include <map>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::sched {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const absl::Time kNow = absl::UnixEpoch();

Devices On(std::vector<int> devices) { return std::make_shared<const std::vector<int>>(std::move(devices)); }

TEST(GangSchedulerTest, FirstComeFirstServedUpToTheLookahead) {
  GangScheduler scheduler({.lookahead = 2});
  TenantId tenant = scheduler.AddTenant("a", 1);
  EXPECT_TRUE(scheduler.Submit({GangId(1), tenant, On({0, 1})}, kNow));
  EXPECT_TRUE(scheduler.Submit({GangId(2), tenant, On({0})}, kNow));
  EXPECT_FALSE(scheduler.Submit({GangId(3), tenant, On({0, 1})}, kNow));
  EXPECT_FALSE(scheduler.Submit({GangId(4), tenant, On({1})}, kNow)) << "a tenant's gangs stay in order";
  EXPECT_THAT(scheduler.Finished(GangId(2), kNow), ElementsAre(GangId(3)));
  EXPECT_THAT(scheduler.Finished(GangId(1), kNow), ElementsAre(GangId(4)));
  EXPECT_THAT(scheduler.Finished(GangId(1), kNow), IsEmpty()) << "told twice";
  EXPECT_EQ(scheduler.log().size(), 4);
}

TEST(GangSchedulerTest, AGangThatWaitsKeepsItsDevices) {
  GangScheduler scheduler({.lookahead = 1});
  TenantId a = scheduler.AddTenant("a", 1), b = scheduler.AddTenant("b", 1), c = scheduler.AddTenant("c", 1);
  EXPECT_TRUE(scheduler.Submit({GangId(1), a, On({0})}, kNow));
  EXPECT_FALSE(scheduler.Submit({GangId(2), b, On({0, 1})}, kNow));
  EXPECT_FALSE(scheduler.Submit({GangId(3), c, On({1})}, kNow)) << "would starve the wide gang";
  EXPECT_TRUE(scheduler.Submit({GangId(4), a, On({2})}, kNow)) << "other devices: passes";
  EXPECT_THAT(scheduler.Finished(GangId(1), kNow), ElementsAre(GangId(2)));
  EXPECT_THAT(scheduler.Finished(GangId(2), kNow), ElementsAre(GangId(3)));
}

TEST(GangSchedulerTest, SharesFollowTheWeights) {
  GangScheduler scheduler({.lookahead = 1, .log_capacity = 100000});
  std::map<TenantId, double> weights;
  for (double weight : {1.0, 2.0, 4.0, 8.0}) weights[scheduler.AddTenant("t", weight)] = weight;
  uint64_t next = 0;
  std::map<GangId, TenantId> owner;
  std::deque<GangId> running;
  auto submit = [&](TenantId tenant) {
    GangId id(++next);
    owner[id] = tenant;
    if (scheduler.Submit({id, tenant, On({0})}, kNow)) running.push_back(id);
  };
  for (auto& [tenant, weight] : weights) {
    for (int i = 0; i < 3; ++i) submit(tenant);
  }
  std::map<TenantId, int> served;
  for (int i = 0; i < 15000; ++i) {
    GangId done = running.front();
    running.pop_front();
    ++served[owner[done]];
    for (GangId id : scheduler.Finished(done, kNow)) running.push_back(id);
    submit(owner[done]);
  }
  for (auto& [tenant, weight] : weights) EXPECT_NEAR(served[tenant], 1000 * weight, 10 * weight);
}

TEST(GangSchedulerTest, AWaitingGangCanBeCancelledAndATenantLeave) {
  GangScheduler scheduler({.lookahead = 1});
  TenantId a = scheduler.AddTenant("a", 1), b = scheduler.AddTenant("b", 1), c = scheduler.AddTenant("c", 1);
  EXPECT_TRUE(scheduler.Submit({GangId(1), a, On({0})}, kNow));
  EXPECT_FALSE(scheduler.Submit({GangId(2), b, On({0, 1})}, kNow));
  EXPECT_FALSE(scheduler.Submit({GangId(3), c, On({1})}, kNow));
  EXPECT_THAT(scheduler.Cancel(GangId(2), kNow), ElementsAre(GangId(3)));
  EXPECT_FALSE(scheduler.Submit({GangId(4), a, On({0})}, kNow));
  scheduler.RemoveTenant(a);
  EXPECT_EQ(scheduler.waiting(), 0);
  EXPECT_THAT(scheduler.Finished(GangId(1), kNow), IsEmpty());
}

// Any stream of gangs over any devices: everything runs, each tenant in its order, loads within the bound.
TEST(GangSchedulerTest, RandomStreamsEnd) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    GangScheduler scheduler({.lookahead = static_cast<int>(1 + random() % 3)});
    std::vector<TenantId> tenants;
    for (int i = 0; i < 3; ++i) tenants.push_back(scheduler.AddTenant("t", 1 + random() % 4));
    std::vector<GangId> running;
    std::vector<uint64_t> order;
    auto admit = [&](const std::vector<GangId>& ids) {
      for (GangId id : ids) {
        running.push_back(id);
        order.push_back(id.value());
      }
    };
    const int total = 60;
    for (uint64_t id = 0; id < total; ++id) {
      std::vector<int> devices;
      for (int d = 0; d < 4; ++d) {
        if (random() % 2) devices.push_back(d);
      }
      if (devices.empty()) devices.push_back(0);
      if (scheduler.Submit({GangId(id), tenants[id % 3], On(devices)}, kNow)) admit({GangId(id)});
      while (!running.empty() && random() % 2) {
        std::swap(running[random() % running.size()], running.back());
        GangId done = running.back();
        running.pop_back();
        admit(scheduler.Finished(done, kNow));
      }
    }
    while (!running.empty()) {
      GangId done = running.back();
      running.pop_back();
      admit(scheduler.Finished(done, kNow));
    }
    EXPECT_EQ(order.size(), total) << "seed " << seed;
    std::map<uint64_t, uint64_t> last;
    for (uint64_t id : order) {
      EXPECT_LE(last[id % 3], id) << "seed " << seed;
      last[id % 3] = id;
    }
  }
}

TEST(GangSchedulerTest, SharesAreOfMeasuredDeviceTime) {
  // Both are expected to take 1 ms; b's gangs take 4.
  GangScheduler scheduler({.lookahead = 1});
  TenantId a = scheduler.AddTenant("a", 1), b = scheduler.AddTenant("b", 1);
  uint64_t next = 1;
  std::map<GangId, TenantId> of;
  auto submit = [&](TenantId tenant) {
    const GangId id(next++);
    of[id] = tenant;
    return scheduler.Submit({id, tenant, On({0}), absl::Milliseconds(1)}, kNow) ? id : GangId(0);
  };
  GangId running = submit(a);
  for (int i = 0; i < 200; ++i) {
    submit(a);
    submit(b);
  }
  std::map<TenantId, int> ran;
  for (int i = 0; i < 100; ++i) {
    const auto admitted =
        scheduler.Finished(running, kNow, of[running] == b ? absl::Milliseconds(4) : absl::Milliseconds(1));
    ASSERT_EQ(admitted.size(), 1);
    running = admitted[0];
    ++ran[of[running]];
  }
  EXPECT_NEAR(ran[a], 80, 2);
  EXPECT_NEAR(ran[b], 20, 2);
}

TEST(GangSchedulerTest, TheHorizonBoundsExpectedTime) {
  GangScheduler scheduler({.horizon = absl::Milliseconds(20)});
  TenantId a = scheduler.AddTenant("a", 1);
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(scheduler.Submit({GangId(i), a, On({0}), absl::Milliseconds(5)}, kNow)) << i;
  }
  EXPECT_FALSE(scheduler.Submit({GangId(4), a, On({0}), absl::Milliseconds(5)}, kNow));
  // Long ones still have one that is ready when the other is over.
  EXPECT_TRUE(scheduler.Submit({GangId(10), scheduler.AddTenant("b", 1), On({1}), absl::Seconds(1)}, kNow));
  EXPECT_TRUE(scheduler.Submit({GangId(11), scheduler.AddTenant("c", 1), On({1}), absl::Seconds(1)}, kNow));
  EXPECT_FALSE(scheduler.Submit({GangId(12), scheduler.AddTenant("d", 1), On({1}), absl::Seconds(1)}, kNow));
}

TEST(GangSchedulerTest, PrioritiesGoFirst) {
  GangScheduler scheduler({.lookahead = 1});
  TenantId a = scheduler.AddTenant("a", 100), urgent = scheduler.AddTenant("urgent", 1, 5);
  EXPECT_TRUE(scheduler.Submit({GangId(1), urgent, On({0})}, kNow));
  EXPECT_FALSE(scheduler.Submit({GangId(2), a, On({0})}, kNow));
  EXPECT_FALSE(scheduler.Submit({GangId(3), urgent, On({0})}, kNow));
  EXPECT_FALSE(scheduler.Submit({GangId(4), urgent, On({0})}, kNow));
  EXPECT_THAT(scheduler.Finished(GangId(1), kNow), ElementsAre(GangId(3)));
  EXPECT_THAT(scheduler.Finished(GangId(3), kNow), ElementsAre(GangId(4)));
  EXPECT_THAT(scheduler.Finished(GangId(4), kNow), ElementsAre(GangId(2)));
}

}  // namespace
}  // namespace gangway::sched
