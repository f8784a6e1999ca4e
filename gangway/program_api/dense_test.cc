#include "gangway/program_api/dense.h"

#include <memory>

#include "gangway/mesh/geometry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::program_api {
namespace {

using testing::ElementsAre;

// Four bytes over four devices in an order of the mesh's.
TEST(DenseTest, ShardsGoToTheDevicesThatHoldThem) {
  const auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", 4}}, {2, 0, 3, 1}));
  controller::ArraySpec spec;
  spec.dtype = DType::kS8;
  spec.dims = {4};
  spec.sharding = Sharding::Replicated(mesh, 1);
  spec.sharding->dims[0].axes = {FullAxis(*mesh, 0)};
  for (int i = 0; i < 4; ++i) spec.devices.push_back(controller::DeviceId(10 + i));
  const auto value = std::make_shared<const std::string>("abcd");
  const auto shards = ShardsOf(Shape(spec.dtype, spec.dims), *spec.sharding, value);
  ASSERT_TRUE(shards.ok()) << shards.status();
  std::string held(4, ' '), whole(4, ' ');
  for (const controller::HostShard& shard : *shards) {
    ASSERT_EQ(shard.devices.size(), 1);
    held[shard.devices[0]] = (*shard.bytes)[0];
  }
  EXPECT_EQ(held, "bdac");
  const std::vector<int> positions = PositionsToFetch(spec);
  EXPECT_THAT(positions, ElementsAre(0, 1, 2, 3));
  for (int position : positions) PlaceShard(spec, position, held.substr(position, 1), &whole);
  EXPECT_EQ(whole, *value);
}

}  // namespace
}  // namespace gangway::program_api
