#include "gangway/resource/cluster.h"

#include "gangway/resource/first_fit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::resource {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

TEST(FirstFitTest, StaysInOneIslandAndSkipsWhatIsTakenOrLost) {
  Cluster cluster;
  ASSERT_TRUE(cluster.Register(Offer("a", 2, 0)).ok());
  ASSERT_TRUE(cluster.Register(Offer("b", 4, 1)).ok());
  EXPECT_THAT(*PlanSliceFirstFit(cluster, {2, {}}, {}), ElementsAre(DeviceId(0), DeviceId(1)));
  EXPECT_THAT(*PlanSliceFirstFit(cluster, {2, {}}, {DeviceId(0)}), ElementsAre(DeviceId(2), DeviceId(3)));
  EXPECT_THAT(*PlanSliceFirstFit(cluster, {1, 1}, {DeviceId(2)}), ElementsAre(DeviceId(3)));
  auto none = PlanSliceFirstFit(cluster, {5, {}}, {});
  EXPECT_TRUE(absl::IsResourceExhausted(none.status())) << none.status();
  cluster.MarkLost(WorkerId(1));
  EXPECT_FALSE(PlanSliceFirstFit(cluster, {1, 1}, {}).ok());
}

}  // namespace
}  // namespace gangway::resource
