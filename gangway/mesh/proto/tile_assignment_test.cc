#include "gangway/mesh/proto/tile_assignment.h"

#include "gangway/mesh/proto/sharding_attribute.h"
#include "gangway/mesh/sharding.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway {
namespace {

using ::testing::HasSubstr;

TEST(TileAssignmentProtoTest, EveryFormGoesBothWays) {
  for (const char* text : {"{replicated}", "{manual}", "{unknown}", "{maximal device=3}", "{devices=[2,4]<=[8]}",
                           "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}", "{devices=[2,2]0,3,1,2}",
                           "{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}"}) {
    absl::StatusOr<TileAssignment> tiles = ParseTileAssignment(text);
    ASSERT_TRUE(tiles.ok()) << text << tiles.status();
    xla::OpSharding proto;
    WriteTileAssignment(*tiles, &proto);
    absl::StatusOr<TileAssignment> read = ReadTileAssignment(proto);
    ASSERT_TRUE(read.ok()) << text << read.status();
    EXPECT_EQ(*read, *tiles) << text;
  }
}

TEST(TileAssignmentProtoTest, NonsenseIsNamed) {
  xla::OpSharding proto;
  proto.set_type(xla::OpSharding::TUPLE);
  EXPECT_THAT(ReadTileAssignment(proto).status().message(), HasSubstr("sharding: type"));
  proto.set_type(xla::OpSharding::MAXIMAL);
  EXPECT_THAT(ReadTileAssignment(proto).status().message(), HasSubstr("one device"));
  proto.set_type(xla::OpSharding::OTHER);
  proto.add_tile_assignment_dimensions(0);
  EXPECT_THAT(ReadTileAssignment(proto).status().message(), HasSubstr("tile count"));
  proto.set_tile_assignment_dimensions(0, 2);
  proto.add_last_tile_dims(xla::OpSharding::MANUAL);
  proto.add_last_tile_dims(xla::OpSharding::REPLICATED);
  EXPECT_THAT(ReadTileAssignment(proto).status().message(), HasSubstr("subgroups"));
}

TEST(ShardingAttributeTest, TextAndMessageSayTheSame) {
  const MeshRef mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", 128}}));
  xla::OpSharding proto;
  WriteTileAssignment(*ParseTileAssignment("{devices=[128,1]<=[128]}"), &proto);
  absl::StatusOr<Shardings> text = ReadShardingAttribute("{devices=[128,1]<=[128]}", {2}, 128, mesh);
  absl::StatusOr<Shardings> bytes = ReadShardingAttribute(proto.SerializeAsString(), {2}, 128, mesh);
  ASSERT_TRUE(text.ok() && bytes.ok()) << text.status() << bytes.status();
  EXPECT_EQ(*bytes, *text);
  EXPECT_FALSE(ReadShardingAttribute("nonsense", {2}, 128, mesh).ok());
  EXPECT_THAT(ReadShardingAttribute(proto.SerializeAsString(), {2, 2}, 128, mesh).status().message(),
              HasSubstr("1 for 2 arrays"));
}

}  // namespace
}  // namespace gangway
