#include "gangway/partition/reshard_plan.h"

#include <algorithm>
#include <string>

#include "gangway/mesh/geometry.h"
#include "gtest/gtest.h"

namespace gangway::partition {
namespace {

MeshRef MakeMesh(std::vector<MeshAxis> axes) { return std::make_shared<const Mesh>(*Mesh::Make(std::move(axes))); }

// Sharding from a text like "xy,_": one entry per dimension.
Sharding Of(const MeshRef& mesh, const std::string& text) {
  Sharding sharding = Sharding::Replicated(mesh, 0);
  sharding.replicated.clear();
  sharding.dims.emplace_back();
  for (char c : text) {
    if (c == ',') {
      sharding.dims.emplace_back();
    } else if (c != '_') {
      sharding.dims.back().axes.push_back(FullAxis(*mesh, mesh->FindAxis(std::string(1, c))));
    }
  }
  return sharding;
}

// The most any device must receive: what it needs and does not hold.
double LowerBound(const Sharding& from, const Sharding& to, const Shape& shape) {
  double worst = 0;
  for (int64_t p = 0; p < from.mesh->size(); ++p) {
    double need = 1, have = 1;
    const auto a = ShardOf(shape, from, p), b = ShardOf(shape, to, p);
    for (int64_t d = 0; d < shape.rank(); ++d) {
      need *= static_cast<double>(b[d].valid);
      have *= static_cast<double>(std::max<int64_t>(
          0, std::min(a[d].offset + a[d].valid, b[d].offset + b[d].valid) - std::max(a[d].offset, b[d].offset)));
    }
    worst = std::max(worst, need - have);
  }
  return worst * ByteWidth(shape.dtype());
}

TEST(ReshardPlan, MeetsTheLowerBoundForEveryPairOn4x2) {
  const MeshRef mesh = MakeMesh({{"x", 4}, {"y", 2}});
  const Shape shape(DType::kF32, {512, 512});
  const std::vector<std::string> specs = {"_,_", "x,_",  "y,_",  "xy,_", "yx,_", "_,x",
                                          "_,y", "_,xy", "_,yx", "x,y",  "y,x"};
  for (const std::string& a : specs) {
    for (const std::string& b : specs) {
      const auto plan = PlanReshard(Of(mesh, a), Of(mesh, b), shape);
      ASSERT_TRUE(plan.ok());
      EXPECT_LE(plan->bytes, LowerBound(Of(mesh, a), Of(mesh, b), shape) * 1.001)
          << a << " -> " << b << ": " << plan->ToString();
    }
  }
}

TEST(ReshardPlan, AnAxisIsUsedOnce) {
  const MeshRef mesh = MakeMesh({{"x", 4}, {"y", 2}});
  const Shape shape(DType::kF32, {512, 512});
  Sharding partial = Of(mesh, "_,_");
  partial.unreduced = {FullAxis(*mesh, 0)};
  Sharding split_too = Of(mesh, "x,_");
  split_too.unreduced = partial.unreduced;
  EXPECT_FALSE(PlanReshard(partial, split_too, shape).ok());
  EXPECT_FALSE(PlanReshard(Of(mesh, "x,x"), Of(mesh, "_,_"), shape).ok());
}

// The same tiles on other devices: every tile travels once, and nothing is gathered.
TEST(ReshardPlan, AnotherDeviceOrderIsOnePermute) {
  const MeshRef mesh = MakeMesh({{"x", 4}, {"y", 2}});
  const MeshRef shuffled = std::make_shared<const Mesh>(*Mesh::Make({{"x", 4}, {"y", 2}}, {5, 2, 7, 0, 3, 6, 1, 4}));
  const Shape shape(DType::kF32, {512, 512});
  const std::vector<std::string> specs = {"x,_", "y,_", "xy,_", "yx,_", "_,x", "_,yx", "x,y", "y,x"};
  for (const std::string& spec : specs) {
    const Sharding from = Of(mesh, spec), to = Of(shuffled, spec);
    const auto plan = PlanReshard(from, to, shape);
    ASSERT_TRUE(plan.ok());
    EXPECT_LE(plan->messages, 1) << spec << ": " << plan->ToString();
    EXPECT_LE(plan->bytes, static_cast<double>(ShardShape(shape, from).ByteSize())) << plan->ToString();
  }
}

// Where the tiles differ too, the way over another mesh costs one tile more than within one mesh at most.
TEST(ReshardPlan, AnotherDeviceOrderNeverGathersEverything) {
  const MeshRef mesh = MakeMesh({{"x", 4}, {"y", 2}});
  const MeshRef shuffled = std::make_shared<const Mesh>(*Mesh::Make({{"x", 4}, {"y", 2}}, {5, 2, 7, 0, 3, 6, 1, 4}));
  const Shape shape(DType::kF32, {512, 512});
  const std::vector<std::string> specs = {"x,_", "y,_", "xy,_", "yx,_", "_,x", "_,yx", "x,y", "y,x"};
  for (const std::string& a : specs) {
    for (const std::string& b : specs) {
      const auto plan = PlanReshard(Of(mesh, a), Of(shuffled, b), shape);
      ASSERT_TRUE(plan.ok());
      const Sharding from = Of(mesh, a);
      EXPECT_LE(plan->bytes, LowerBound(from, Of(mesh, b), shape) + ShardShape(shape, from).ByteSize())
          << a << " -> " << b << ": " << plan->ToString();
    }
  }
}

// A mesh of `axes` axes of two devices, named a, b, c, ...
MeshRef MeshOfTwos(int axes) {
  std::vector<MeshAxis> made;
  for (int i = 0; i < axes; ++i) made.push_back({std::string(1, static_cast<char>('a' + i)), 2});
  return MakeMesh(std::move(made));
}

TEST(ReshardPlan, ManyAxesAreNoReasonToGather) {
  const MeshRef mesh = MeshOfTwos(8);
  const Shape shape(DType::kF32, {64, 64, 64, 64, 64});
  const double tile = static_cast<double>(shape.ByteSize()) / 256;
  for (const auto& [from, to] :
       {std::pair{"ab,cd,ef,g,h", "hg,fe,dc,b,a"}, std::pair{"abcd,efgh,_,_,_", "_,_,hg,fedc,ba"},
        std::pair{"ab,_,cd,_,efgh", "e,fa,g,bch,d"}}) {
    const auto plan = PlanReshard(Of(mesh, from), Of(mesh, to), shape);
    ASSERT_TRUE(plan.ok());
    EXPECT_LE(plan->bytes, 2 * tile) << from << " -> " << to << ": " << plan->ToString();
  }
}

TEST(ReshardPlan, HasMoreDigitsThanAWordHasBits) {
  const std::string axes = "abcdefghijklmnopqrst";
  const MeshRef mesh = MeshOfTwos(static_cast<int>(axes.size()));
  const Shape shape(DType::kF32, {int64_t{1} << 20, int64_t{1} << 20});
  const auto plan = PlanReshard(Of(mesh, axes + ",_"), Of(mesh, "_," + axes), shape);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->messages, 1) << plan->ToString();
  EXPECT_LE(plan->bytes, static_cast<double>(shape.ByteSize() >> 20));
}

TEST(ReshardPlan, PartialSumsScatterOntoDimensionsTheyWillSplit) {
  const MeshRef mesh = MakeMesh({{"x", 4}, {"y", 2}});
  Sharding from = Of(mesh, "_,y");
  from.unreduced = {FullAxis(*mesh, 0)};
  const Shape shape(DType::kF32, {64, 64});
  auto plan = PlanReshard(from, Of(mesh, "x,y"), shape);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->ToString(), "reduce-scatter dim0:-->'x' over {'x'} 6144 bytes");
  plan = PlanReshard(from, Of(mesh, "_,y"), shape);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->ToString(), "all-reduce over {'x'} 12288 bytes");
}

TEST(ReshardPlan, PartsBecomeSummandsWhereTheyAre) {
  const MeshRef mesh = MakeMesh({{"x", 4}, {"y", 2}});
  Sharding to = Of(mesh, "_,y");
  to.unreduced = {FullAxis(*mesh, 0)};
  auto plan = PlanReshard(Of(mesh, "x,y"), to, Shape(DType::kF32, {64, 64}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->ToString(), "spread dim0:'x'->- over {'x'}");
  // What else has to move does so afterwards.
  plan = PlanReshard(Of(mesh, "x,_"), to, Shape(DType::kF32, {64, 64}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->ToString(), "spread dim0:'x'->- over {'x'}; slice dim1:-->'y'");
}

TEST(ReshardPlan, SliceIsFree) {
  const MeshRef mesh = MakeMesh({{"x", 4}, {"y", 2}});
  const auto plan = PlanReshard(Of(mesh, "_,_"), Of(mesh, "y,x"), Shape(DType::kF32, {10, 10}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->bytes, 0);
}

TEST(ReshardPlan, ChangingManualAxesIsAnError) {
  const MeshRef mesh = MakeMesh({{"x", 4}, {"y", 2}});
  Sharding manual = Of(mesh, "_,y");
  manual.manual = {FullAxis(*mesh, 0)};
  EXPECT_FALSE(PlanReshard(manual, Of(mesh, "_,y"), Shape(DType::kF32, {4, 4})).ok());
}

}  // namespace
}  // namespace gangway::partition
