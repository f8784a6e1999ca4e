#include "gangway/mesh/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gangway {
namespace {

using ::testing::ElementsAre;

Mesh MakeMesh(std::vector<MeshAxis> axes, std::vector<int64_t> ids = {}) { return *Mesh::Make(axes, ids); }

TEST(Mesh, RefusesWhatIsNoMesh) {
  EXPECT_FALSE(Mesh::Make({{"x", 2}, {"x", 2}}).ok());
  EXPECT_FALSE(Mesh::Make({{"", 2}}).ok());
  EXPECT_FALSE(Mesh::Make({{"x", 0}}).ok());
  EXPECT_FALSE(Mesh::Make({{"x", 1 << 13}, {"y", 1 << 13}}).ok());
  EXPECT_FALSE(Mesh::Make({{"x", 2}}, {0, 0}).ok());
  EXPECT_FALSE(Mesh::Make({{"x", 2}}, {0}).ok());
  std::vector<MeshAxis> many;
  for (int i = 0; i < 100000; ++i) many.push_back({std::to_string(i), 1});
  EXPECT_FALSE(Mesh::Make(std::move(many)).ok());
}

TEST(Mesh, DevicesAndText) {
  const Mesh mesh = MakeMesh({{"x", 2}, {"y", 2}}, {0, 2, 1, 3});
  EXPECT_EQ(mesh.size(), 4);
  EXPECT_EQ(mesh.DeviceAt(1), 2);
  EXPECT_EQ(mesh.PositionOf(2), 1);
  EXPECT_EQ(mesh.PositionOf(9), -1);
  EXPECT_EQ(mesh.ToString(), "mesh['x'=2,'y'=2], device_ids=(0,2,1,3)");
  EXPECT_TRUE(MakeMesh({{"x", 2}}, {0, 1}).IsIota());
  EXPECT_TRUE(Mesh::Maximal(3).IsMaximal());
  EXPECT_EQ(Mesh::Maximal(3).DeviceAt(0), 3);
}

TEST(Axes, OverlapOfSubAxes) {
  EXPECT_TRUE(Overlaps(AxisRef{0, 1, 2}, AxisRef{0, 1, 4}));
  EXPECT_FALSE(Overlaps(AxisRef{0, 1, 2}, AxisRef{0, 2, 2}));
  EXPECT_FALSE(Overlaps(AxisRef{0, 1, 2}, AxisRef{1, 1, 2}));
  // Halves and thirds of an axis of 6 belong to different factorizations.
  EXPECT_TRUE(Overlaps(AxisRef{0, 1, 2}, AxisRef{0, 3, 2}));
}

TEST(Axes, MergePrefixRest) {
  AxisList axes = {{0, 1, 2}, {0, 2, 2}, {1, 1, 2}};
  MergeSubAxes(&axes);
  EXPECT_THAT(axes, ElementsAre(AxisRef{0, 1, 4}, AxisRef{1, 1, 2}));
  EXPECT_THAT(CommonPrefix(axes, {{0, 1, 2}}), ElementsAre(AxisRef{0, 1, 2}));
  EXPECT_THAT(RemovePrefix(axes, {{0, 1, 2}}), ElementsAre(AxisRef{0, 2, 2}, AxisRef{1, 1, 2}));
  EXPECT_THAT(RemovePrefix(axes, {{0, 1, 4}}), ElementsAre(AxisRef{1, 1, 2}));
  EXPECT_TRUE(CommonPrefix(axes, {{1, 1, 2}}).empty());
  EXPECT_TRUE(Contains(axes, {0, 2, 2}));
  EXPECT_FALSE(Contains({{0, 1, 2}}, {0, 1, 4}));
}

TEST(Axes, UnusedCoordinatesGroups) {
  const Mesh mesh = MakeMesh({{"x", 4}, {"y", 2}});
  EXPECT_THAT(UnusedAxes(mesh, {{0, 2, 2}}), ElementsAre(AxisRef{0, 1, 2}, AxisRef{1, 1, 2}));
  EXPECT_EQ(CoordinateOf(mesh, 5, {{0, 1, 4}}), 2);
  EXPECT_EQ(CoordinateOf(mesh, 5, {{1, 1, 2}, {0, 1, 2}}), 3);
  EXPECT_THAT(ReplicaGroups(mesh, {{1, 1, 2}}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5), ElementsAre(6, 7)));
  EXPECT_THAT(ReplicaGroups(mesh, {{0, 2, 2}}),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7)));
  EXPECT_THAT(ReplicaGroups(MakeMesh({{"x", 2}, {"y", 2}}, {3, 2, 1, 0}), {{0, 1, 2}}),
              ElementsAre(ElementsAre(3, 1), ElementsAre(2, 0)));
  EXPECT_EQ(AxesToString(mesh, {{0, 2, 2}, {1, 1, 2}}), "{'x':(2)2,'y'}");
}

}  // namespace
}  // namespace gangway
