#include "gangway/mesh/geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gangway {
namespace {

using ::testing::ElementsAre;

MeshRef MakeMesh(std::vector<MeshAxis> axes) { return std::make_shared<const Mesh>(*Mesh::Make(axes)); }

TEST(GeometryTest, DevicesMayBeOrdered) {
  const auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", 4}}, {2, 0, 3, 1}));
  const Shape shape(DType::kF32, {7});
  Sharding sharding = Sharding::Replicated(mesh, 1);
  EXPECT_THAT(ShardOfDevice(shape, sharding, 5), ElementsAre(ShardDim{0, 7, 7}));
  sharding.dims[0].axes = {FullAxis(*mesh, 0)};
  EXPECT_THAT(ShardOfDevice(shape, sharding, 2), ElementsAre(ShardDim{0, 2, 2}));
  EXPECT_THAT(ShardOfDevice(shape, sharding, 1), ElementsAre(ShardDim{6, 2, 1}));
  EXPECT_THAT(ShardOfDevice(shape, sharding, 5), ElementsAre(ShardDim{0, 2, 0}));
  const Sharding maximal = Sharding::Maximal(1, 1);
  EXPECT_THAT(ShardOfDevice(shape, maximal, 1), ElementsAre(ShardDim{0, 7, 7}));
  EXPECT_THAT(ShardOfDevice(shape, maximal, 0), ElementsAre(ShardDim{0, 7, 0}));
}

TEST(Geometry, UnevenShardsArePaddedAtTheEnd) {
  const MeshRef mesh = MakeMesh({{"x", 4}});
  Sharding sharding = Sharding::Replicated(mesh, 1);
  sharding.dims[0].axes = {FullAxis(*mesh, 0)};
  const Shape shape(DType::kF32, {5});
  EXPECT_EQ(ShardShape(shape, sharding).ToString(), "f32[2]");
  EXPECT_FALSE(IsEven(shape, sharding));
  EXPECT_THAT(ShardOf(shape, sharding, 0), ElementsAre(ShardDim{0, 2, 2}));
  EXPECT_THAT(ShardOf(shape, sharding, 2), ElementsAre(ShardDim{4, 2, 1}));
  EXPECT_THAT(ShardOf(shape, sharding, 3), ElementsAre(ShardDim{6, 2, 0}));
}

TEST(Geometry, TuplesTakeOneShardingPerLeaf) {
  const MeshRef mesh = MakeMesh({{"x", 2}});
  Sharding split = Sharding::Replicated(mesh, 1);
  split.dims[0].axes = {FullAxis(*mesh, 0)};
  const Shape shape = Shape::Tuple({Shape(DType::kF32, {4}), Shape::Tuple({Shape(DType::kS32, {6}), Shape::Token()})});
  const Shardings shardings = {split, split, Sharding::Replicated(mesh, 0)};
  EXPECT_EQ(ShardShape(shape, shardings).ToString(), "(f32[2], (s32[3], token[]))");
}

// Every element is in exactly one valid part over the coordinates of the dimension.
TEST(Geometry, ValidPartsCoverTheArrayOnce) {
  const MeshRef mesh = MakeMesh({{"x", 3}, {"y", 2}});
  for (int64_t extent = 0; extent <= 13; ++extent) {
    for (const AxisList& axes : {AxisList{{0, 1, 3}}, AxisList{{1, 1, 2}}, AxisList{{1, 1, 2}, {0, 1, 3}}}) {
      Sharding sharding = Sharding::Replicated(mesh, 1);
      sharding.dims[0].axes = axes;
      std::vector<int> held(extent, 0);
      for (int64_t position = 0; position < mesh->size(); ++position) {
        const ShardDim shard = ShardOf(Shape(DType::kF32, {extent}), sharding, position)[0];
        for (int64_t i = 0; i < shard.valid; ++i) ++held[shard.offset + i];
      }
      const int copies = static_cast<int>(mesh->size() / ProductOf(axes));
      EXPECT_EQ(held, std::vector<int>(extent, copies));
    }
  }
}

}  // namespace
}  // namespace gangway
