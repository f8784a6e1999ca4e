#include "gangway/ifrt_proxy/protocol.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla/python/pjrt_ifrt/xla_sharding.pb.h"

namespace gangway::ifrt_proxy {
namespace {

xla::ifrt::proxy::IfrtProxyVersion Version(int protocol, int serdes) {
  xla::ifrt::proxy::IfrtProxyVersion version;
  version.set_protocol_version(protocol);
  version.set_ifrt_serdes_version_number(serdes);
  return version;
}

TEST(NegotiateTest, TakesTheNewestBothSpeak) {
  EXPECT_EQ(NegotiateVersion(Version(16, 2), Version(25, 6))->protocol_version(), 25);
  EXPECT_EQ(NegotiateVersion(Version(10, 1), Version(18, 3))->protocol_version(), 18);
  EXPECT_EQ(NegotiateVersion(Version(20, 2), Version(99, 99))->ifrt_serdes_version_number(), kMaxSerdesVersion);
}

TEST(NegotiateTest, NamesBothRangesWhenThereIsNone) {
  absl::Status status = NegotiateVersion(Version(26, 6), Version(30, 8)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("26..30"), absl::string_view::npos);
  EXPECT_NE(status.message().find("16..25"), absl::string_view::npos);
}

TEST(DTypeTest, EveryElementTypeGoesBothWays) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsElement(info.dtype)) continue;
    auto back = FromProto(ToProto(info.dtype));
    ASSERT_TRUE(back.ok()) << info.name << ": " << back.status();
    EXPECT_EQ(*back, info.dtype) << info.name;
  }
}

TEST(DTypeTest, StringsAreNoElements) {
  xla::ifrt::DTypeProto proto;
  proto.set_kind(xla::ifrt::DTypeProto::KIND_STRING);
  EXPECT_THAT(FromProto(proto).status().message(), testing::HasSubstr("arrays of strings"));
}

TEST(StridesTest, DenseAndStridedAreInverse) {
  std::string dense = "abcdef";  // [2][3] bytes
  // Column-major in memory: strides 1, 2.
  std::string column_major = *MakeStrided(dense, {2, 3}, 1, {1, 2}, 100);
  EXPECT_EQ(column_major, "adbecf");
  EXPECT_EQ(*MakeDense(column_major, {2, 3}, 1, {1, 2}, 100), dense);
  // Gaps between rows.
  EXPECT_EQ(*MakeDense("ab..cd", {2, 2}, 1, {4, 1}, 100), "abcd");
  // A broadcast (stride 0) repeats.
  EXPECT_EQ(*MakeDense("xy", {3, 2}, 1, {0, 1}, 100), "xyxyxy");
}

TEST(StridesTest, WhatLeavesTheBufferIsRefused) {
  EXPECT_FALSE(MakeDense("abc", {2, 2}, 1, {2, 1}, 100).ok());
  EXPECT_FALSE(MakeDense("abcd", {2, 2}, 1, {-2, 1}, 100).ok());
  EXPECT_FALSE(MakeDense("abcd", {2, 2}, 1, {2}, 100).ok());
  EXPECT_FALSE(MakeDense("abcd", {2, 2}, 1, {INT64_MAX, 1}, 100).ok());
  EXPECT_EQ(*MakeDense("", {0, 2}, 4, {8, 4}, 100), "");
}

// A few bytes and a stride of zero are as much as a client likes.
TEST(StridesTest, NoMoreThanASessionHasRoomFor) {
  EXPECT_TRUE(absl::IsResourceExhausted(MakeDense("abcd", {int64_t{1} << 40}, 4, {0}, int64_t{1} << 30).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(MakeStrided("abcdefgh", {8}, 1, {100}, 700).status()));
  EXPECT_TRUE(MakeStrided("abcdefgh", {8}, 1, {100}, 701).ok());
}

TEST(ShardingTest, HloShardingGivesShardShapesRoundedUp) {
  xla::ifrt::HloShardingProto hlo;
  for (int i = 0; i < 4; ++i) hlo.mutable_devices()->add_device_ids(i);
  auto* op = hlo.mutable_xla_op_sharding();
  op->set_type(xla::OpSharding::OTHER);
  for (int dim : {2, 1, 2}) op->add_tile_assignment_dimensions(dim);
  op->add_iota_reshape_dims(4);
  op->add_iota_transpose_perm(0);
  op->set_replicate_on_last_tile_dim(true);
  xla::ifrt::ShardingProto sharding;
  sharding.mutable_serialized_sharding()->set_type_name("xla::ifrt::HloSharding");
  sharding.mutable_serialized_sharding()->set_data(hlo.SerializeAsString());
  auto spec = MakeArraySpec(DType::kF32, {5, 8}, sharding);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->devices.size(), 4u);
  EXPECT_EQ(spec->shard_dims, (std::vector<DimVector>{{3, 8}}));
}

TEST(ShardingTest, UnknownFormsAreNamed) {
  xla::ifrt::ShardingProto sharding;
  sharding.mutable_serialized_sharding()->set_type_name("xla::ifrt::Nonsense");
  EXPECT_EQ(MakeArraySpec(DType::kF32, {2}, sharding).status().message(),
            "sharding: sharding of type 'xla::ifrt::Nonsense'");
}

}  // namespace
}  // namespace gangway::ifrt_proxy
