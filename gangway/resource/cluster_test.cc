#include "gangway/resource/cluster.h"

#include "gangway/resource/relocation.h"
#include "gangway/resource/slice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::resource {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

WorkerOffer Offer(std::string name, int devices, int island = 0) {
  return {std::move(name), island, std::vector<DeviceOffer>(devices, DeviceOffer{"cpu", {}})};
}

TEST(ClusterTest, PlacesByWorkerInTheOrderOfTheList) {
  Cluster cluster;
  ASSERT_TRUE(cluster.Register(Offer("a", 2)).ok());
  ASSERT_TRUE(cluster.Register(Offer("b", 2)).ok());
  auto placement = cluster.Place({DeviceId(3), DeviceId(0), DeviceId(2)});
  ASSERT_TRUE(placement.ok());
  EXPECT_THAT(*placement, ElementsAre(Share{WorkerId(1), {{0, 1}, {2, 0}}}, Share{WorkerId(0), {{1, 0}}}));
  EXPECT_THAT(cluster.Place({DeviceId(4)}).status().message(), HasSubstr("no device 4"));
  EXPECT_THAT(cluster.Place({DeviceId(1), DeviceId(1)}).status().message(), HasSubstr("named twice"));
}

TEST(ClusterTest, AWorkerComesBackUnderItsName) {
  Cluster cluster;
  ASSERT_TRUE(cluster.Register(Offer("a", 2)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(cluster.Register(Offer("a", 2)).status()));
  cluster.MarkLost(WorkerId(0));
  EXPECT_TRUE(absl::IsUnavailable(cluster.Place({DeviceId(0)}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(cluster.Register(Offer("a", 3)).status()));
  auto again = cluster.Register(Offer("a", 2));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, WorkerId(0));
  EXPECT_EQ(cluster.devices().size(), 2);
}

TEST(ClusterTest, IdsAreSeatsThatChange) {
  Cluster cluster;
  ASSERT_TRUE(cluster.Register(Offer("a", 2)).ok());
  ASSERT_TRUE(cluster.Register(Offer("b", 2)).ok());
  cluster.Swap(DeviceId(1), DeviceId(2));
  EXPECT_THAT(*cluster.Place({DeviceId(0), DeviceId(1)}),
              ElementsAre(Share{WorkerId(0), {{0, 0}}}, Share{WorkerId(1), {{1, 0}}}));
  EXPECT_THAT(cluster.worker(WorkerId(0)).devices, ElementsAre(DeviceId(0), DeviceId(2)));
  // It comes back to the seats it had last.
  cluster.MarkLost(WorkerId(0));
  ASSERT_TRUE(cluster.Register(Offer("a", 2)).ok());
  EXPECT_EQ(cluster.device(DeviceId(2)).worker, WorkerId(0));
}

TEST(RelocationTest, ToOneWorkerWhereItHasRoom) {
  Cluster cluster;
  for (auto [name, devices, island] : {std::tuple("a", 2, 0), {"b", 1, 0}, {"c", 3, 0}, {"d", 2, 0}, {"e", 9, 1}}) {
    ASSERT_TRUE(cluster.Register(Offer(name, devices, island)).ok());
  }
  std::vector<bool> used(17, false);
  used[0] = used[1] = true;
  const std::vector<DeviceId> devices = {DeviceId(0), DeviceId(1)};
  EXPECT_THAT(*PlanRelocation(cluster, devices, used),
              ElementsAre(Pair(DeviceId(0), DeviceId(6)), Pair(DeviceId(1), DeviceId(7))));
  used[7] = used[3] = true;  // two left on c
  EXPECT_THAT(*PlanRelocation(cluster, devices, used),
              ElementsAre(Pair(DeviceId(0), DeviceId(4)), Pair(DeviceId(1), DeviceId(5))));
  cluster.MarkLeaving(WorkerId(2));
  EXPECT_THAT(*PlanRelocation(cluster, devices, used),
              ElementsAre(Pair(DeviceId(0), DeviceId(2)), Pair(DeviceId(1), DeviceId(6))));
  used[2] = true;
  EXPECT_THAT(PlanRelocation(cluster, devices, used).status().message(),
              HasSubstr("island 0 has 1 devices that nobody uses, 2 are needed"));
}

TEST(SliceTest, FirstFitStaysInOneIslandAndSkipsWhatIsTakenOrLost) {
  Cluster cluster;
  ASSERT_TRUE(cluster.Register(Offer("a", 2, 0)).ok());
  ASSERT_TRUE(cluster.Register(Offer("b", 4, 1)).ok());
  auto plan = [&](int devices, std::optional<int> island, std::vector<int> load) {
    return PlanSlice(cluster, {devices, island, "first_fit"}, load);
  };
  EXPECT_THAT(*plan(2, {}, {0, 0, 0, 0, 0, 0}), ElementsAre(DeviceId(0), DeviceId(1)));
  EXPECT_THAT(*plan(2, {}, {1, 0, 0, 0, 0, 0}), ElementsAre(DeviceId(2), DeviceId(3)));
  EXPECT_THAT(*plan(1, 1, {0, 0, 1, 0, 0, 0}), ElementsAre(DeviceId(3)));
  EXPECT_TRUE(absl::IsResourceExhausted(plan(5, {}, {0, 0, 0, 0, 0, 0}).status()));
  cluster.MarkLost(WorkerId(1));
  EXPECT_FALSE(plan(1, 1, {0, 0, 0, 0, 0, 0}).ok());
  cluster.MarkLeaving(WorkerId(0));
  EXPECT_FALSE(plan(1, 0, {0, 0, 0, 0, 0, 0}).ok());
}

TEST(SliceTest, SpreadTakesTheLeastLoadedTogether) {
  Cluster cluster;
  ASSERT_TRUE(cluster.Register(Offer("a", 4, 0)).ok());
  ASSERT_TRUE(cluster.Register(Offer("b", 2, 1)).ok());
  EXPECT_THAT(*PlanSlice(cluster, {2, {}, ""}, {1, 0, 2, 0, 0, 0}), ElementsAre(DeviceId(1), DeviceId(3)));
  EXPECT_THAT(*PlanSlice(cluster, {2, {}, ""}, {1, 1, 2, 0, 0, 0}), ElementsAre(DeviceId(4), DeviceId(5)));
  EXPECT_THAT(*PlanSlice(cluster, {3, {}, ""}, {1, 1, 2, 0, 0, 0}), ElementsAre(DeviceId(0), DeviceId(1), DeviceId(3)));
}

TEST(SliceTest, PackUsesFewWorkers) {
  Cluster cluster;
  ASSERT_TRUE(cluster.Register(Offer("a", 1)).ok());
  ASSERT_TRUE(cluster.Register(Offer("b", 4)).ok());
  ASSERT_TRUE(cluster.Register(Offer("c", 2)).ok());
  const std::vector<int> load(7, 0);
  EXPECT_THAT(*PlanSlice(cluster, {2, {}, "pack"}, load), ElementsAre(DeviceId(5), DeviceId(6)));
  EXPECT_THAT(*PlanSlice(cluster, {5, {}, "pack"}, load),
              ElementsAre(DeviceId(0), DeviceId(1), DeviceId(2), DeviceId(3), DeviceId(4)));
}

TEST(SliceTest, MistakesAreNamed) {
  Cluster cluster;
  ASSERT_TRUE(cluster.Register(Offer("a", 1)).ok());
  const std::vector<int> load(1, 0);
  EXPECT_THAT(PlanSlice(cluster, {0, {}, ""}, load).status().message(), HasSubstr("a slice of 0 devices"));
  EXPECT_THAT(PlanSlice(cluster, {1, {}, "best"}, load).status().message(), HasSubstr("\"best\" is none of"));
}

}  // namespace
}  // namespace gangway::resource
