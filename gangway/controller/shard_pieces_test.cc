#include "gangway/controller/shard_pieces.h"

#include <memory>

#include "gangway/mesh/geometry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::controller {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

MeshRef MeshOf(std::vector<MeshAxis> axes) { return std::make_shared<const Mesh>(*Mesh::Make(std::move(axes))); }

// An array [8, 4] whose dimensions are split by these axes of the mesh, on devices from `first` on.
ArraySpec Split(const MeshRef& mesh, std::vector<std::vector<int>> axes, int first = 0) {
  ArraySpec spec;
  spec.dtype = DType::kF32;
  spec.dims = {8, 4};
  spec.sharding = Sharding::Replicated(mesh, 2);
  for (size_t d = 0; d < axes.size(); ++d) {
    for (int axis : axes[d]) spec.sharding->dims[d].axes.push_back(FullAxis(*mesh, axis));
  }
  for (int64_t i = 0; i < mesh->size(); ++i) spec.devices.push_back(DeviceId(static_cast<int32_t>(first + i)));
  spec.shard_dims = {ShardShape(Shape(spec.dtype, spec.dims), *spec.sharding).dims()};
  return spec;
}

std::vector<ShardPiece> Plan(const ArraySpec& from, const ArraySpec& to) {
  auto pieces = PlanPieces(from, to, [&](int a, int b) { return from.devices[a] == to.devices[b] ? 0 : 1; });
  EXPECT_TRUE(pieces.ok()) << pieces.status();
  return pieces.value_or(std::vector<ShardPiece>());
}

TEST(ShardPiecesTest, RowsBecomeColumns) {
  const MeshRef mesh = MeshOf({{"x", 2}});
  EXPECT_THAT(Plan(Split(mesh, {{0}, {}}), Split(mesh, {{}, {0}})),
              ElementsAre(ShardPiece{0, 0, {0, 0}, {0, 0}, {4, 2}}, ShardPiece{1, 0, {0, 0}, {4, 0}, {4, 2}},
                          ShardPiece{0, 1, {0, 2}, {0, 0}, {4, 2}}, ShardPiece{1, 1, {0, 2}, {4, 0}, {4, 2}}));
}

TEST(ShardPiecesTest, MeshesMayOrderDevices) {
  const auto turned = std::make_shared<const Mesh>(*Mesh::Make({{"x", 2}}, {1, 0}));
  EXPECT_THAT(Plan(Split(MeshOf({{"x", 2}}), {{0}, {}}), Split(turned, {{0}, {}})),
              UnorderedElementsAre(ShardPiece{1, 0, {0, 0}, {0, 0}, {4, 4}}, ShardPiece{0, 1, {0, 0}, {0, 0}, {4, 4}}));
  EXPECT_TRUE(HoldOtherParts(Split(MeshOf({{"x", 2}}), {{0}, {}}), Split(turned, {{0}, {}})));
}

TEST(ShardPiecesTest, EqualShardsMayHoldOtherParts) {
  const MeshRef mesh = MeshOf({{"x", 2}, {"y", 2}}), other = MeshOf({{"a", 2}, {"b", 2}}), flat = MeshOf({{"x", 4}});
  const ArraySpec by_x = Split(mesh, {{0}, {}});
  EXPECT_TRUE(HoldOtherParts(by_x, Split(mesh, {{1}, {}})));
  EXPECT_TRUE(HoldOtherParts(Split(mesh, {{0, 1}, {}}), Split(mesh, {{1, 0}, {}})));
  EXPECT_FALSE(HoldOtherParts(by_x, Split(other, {{0}, {}})));
  EXPECT_FALSE(HoldOtherParts(Split(mesh, {{0, 1}, {}}), Split(flat, {{0}, {}})));
  ArraySpec unknown = by_x;
  unknown.sharding.reset();
  EXPECT_FALSE(HoldOtherParts(unknown, by_x));
}

TEST(ShardPiecesTest, FewerDevicesHoldMoreEach) {
  EXPECT_THAT(Plan(Split(MeshOf({{"x", 4}}), {{0}, {}}), Split(MeshOf({{"x", 2}}), {{0}, {}}, 8)),
              ElementsAre(ShardPiece{0, 0, {0, 0}, {0, 0}, {2, 4}}, ShardPiece{1, 0, {0, 0}, {2, 0}, {2, 4}},
                          ShardPiece{2, 1, {0, 0}, {0, 0}, {2, 4}}, ShardPiece{3, 1, {0, 0}, {2, 0}, {2, 4}}));
}

TEST(ShardPiecesTest, TheNearestReplicaIsTaken) {
  const MeshRef mesh = MeshOf({{"x", 2}});
  EXPECT_THAT(Plan(Split(mesh, {{}, {}}), Split(mesh, {{0}, {}})),
              ElementsAre(ShardPiece{0, 0, {0, 0}, {0, 0}, {4, 4}}, ShardPiece{1, 1, {4, 0}, {0, 0}, {4, 4}}));
}

TEST(ShardPiecesTest, UnevenShardsMeetInTheMiddle) {
  // Of 8 rows three devices hold 3, 3 and 2.
  EXPECT_THAT(Plan(Split(MeshOf({{"x", 3}}), {{0}, {}}), Split(MeshOf({{"x", 2}}), {{0}, {}}, 8)),
              ElementsAre(ShardPiece{0, 0, {0, 0}, {0, 0}, {3, 4}}, ShardPiece{1, 0, {0, 0}, {3, 0}, {1, 4}},
                          ShardPiece{1, 1, {1, 0}, {0, 0}, {2, 4}}, ShardPiece{2, 1, {0, 0}, {2, 0}, {2, 4}}));
}

TEST(ShardPiecesTest, WhatIsNotKnownIsRefused) {
  const MeshRef mesh = MeshOf({{"x", 2}});
  ArraySpec unknown = Split(mesh, {{0}, {}}), sums = unknown, other = unknown;
  unknown.sharding.reset();
  sums.sharding = Sharding::Replicated(mesh, 2);
  sums.sharding->unreduced = {FullAxis(*mesh, 0)};
  other.dims = {4, 8};
  auto near = [](int, int) { return 0; };
  EXPECT_EQ(PlanPieces(unknown, unknown, near).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(PlanPieces(sums, unknown, near).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(PlanPieces(Split(mesh, {{0}, {}}), other, near).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gangway::controller
