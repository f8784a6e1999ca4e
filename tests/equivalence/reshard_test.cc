// Every pair of shardings of two-dimensional arrays on small meshes, carried out on all devices in lockstep.
#include <string>
#include <vector>

#include "gangway/eval/evaluate.h"
#include "gangway/hlo/builder.h"
#include "gangway/hlo/module.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/emit_reshard.h"
#include "gangway/partition/reshard_plan.h"
#include "gtest/gtest.h"
#include "tests/equivalence/shards.h"

namespace gangway::equivalence {
namespace {

MeshRef MakeMesh(std::vector<MeshAxis> axes, std::vector<int64_t> ids = {}) {
  return std::make_shared<const Mesh>(*Mesh::Make(std::move(axes), std::move(ids)));
}

// All ordered ways to put some of `axes` on the dimensions; the rest is replicated.
void AddShardings(const MeshRef& mesh, AxisList left, const Sharding& so_far, std::vector<Sharding>* all) {
  all->push_back(so_far);
  for (size_t i = 0; i < left.size(); ++i) {
    AxisList rest = left;
    rest.erase(rest.begin() + static_cast<int64_t>(i));
    for (int d = 0; d < so_far.rank(); ++d) {
      // Each sharding once: dimensions are filled in order.
      bool later = false;
      for (int e = d + 1; e < so_far.rank(); ++e) later |= !so_far.dims[e].axes.empty();
      if (later) continue;
      Sharding next = so_far;
      next.dims[d].axes.push_back(left[i]);
      AddShardings(mesh, rest, next, all);
    }
  }
}

std::vector<Sharding> AllShardings(const MeshRef& mesh, int64_t rank = 2) {
  AxisList axes;
  for (int a = 0; a < mesh->rank(); ++a) axes.push_back(FullAxis(*mesh, a));
  std::vector<Sharding> all;
  AddShardings(mesh, axes, Sharding::Replicated(mesh, rank).Closed(), &all);
  return all;
}

void CheckReshard(const Sharding& from, const Sharding& to, const Shape& shape) {
  const auto plan = partition::PlanReshard(from, to, shape);
  ASSERT_TRUE(plan.ok()) << plan.status();
  hlo::Module module("reshard");
  const int64_t devices = from.mesh->size();
  module.config().num_partitions = devices;
  hlo::Computation* entry = module.AddComputation("main");
  module.set_entry(entry);
  hlo::Builder builder(entry);
  partition::Coordinates coordinates(&builder);
  int64_t channel = 1;
  partition::CollectiveBuilder collectives(&coordinates, &channel);
  hlo::Instruction* value = builder.Parameter(0, ShardShape(shape, from), "x");
  entry->set_root(partition::EmitReshard(*plan, &collectives, value));
  ASSERT_EQ(entry->root()->shape(), ShardShape(shape, to)) << plan->ToString();

  const Literal whole = Counting(shape);
  std::vector<std::vector<Literal>> arguments;
  for (Literal& shard : ShardAll(whole, from, devices, -99)) arguments.push_back({std::move(shard)});
  const auto results = eval::EvaluateSpmd(module, arguments, devices);
  ASSERT_TRUE(results.ok()) << results.status() << "\n" << plan->ToString();
  bool agree = false;
  const Literal got = Assemble(*results, shape, to, &agree);
  EXPECT_TRUE(agree) << from.ToString() << " -> " << to.ToString() << ": " << plan->ToString();
  EXPECT_TRUE(got == whole) << from.ToString() << " -> " << to.ToString() << ": " << plan->ToString();
}

void CheckAllPairs(const MeshRef& mesh, const Shape& shape) {
  const std::vector<Sharding> all = AllShardings(mesh, shape.rank());
  for (const Sharding& from : all) {
    for (const Sharding& to : all) {
      CheckReshard(from, to, shape);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Reshard, AllPairsOn4x2Even) { CheckAllPairs(MakeMesh({{"x", 4}, {"y", 2}}), Shape(DType::kF32, {16, 16})); }
TEST(Reshard, AllPairsOn4x2Uneven) { CheckAllPairs(MakeMesh({{"x", 4}, {"y", 2}}), Shape(DType::kS32, {10, 7})); }
TEST(Reshard, AllPairsOn2x2x2Even) {
  CheckAllPairs(MakeMesh({{"x", 2}, {"y", 2}, {"z", 2}}), Shape(DType::kF32, {8, 16}));
}
TEST(Reshard, AllPairsOn2x2x2Uneven) {
  CheckAllPairs(MakeMesh({{"x", 2}, {"y", 2}, {"z", 2}}), Shape(DType::kS32, {5, 13}));
}
TEST(Reshard, AllPairsOn3x2) { CheckAllPairs(MakeMesh({{"x", 3}, {"y", 2}}), Shape(DType::kF32, {12, 9})); }
TEST(Reshard, AllPairsInAPermutedDeviceOrder) {
  CheckAllPairs(MakeMesh({{"x", 2}, {"y", 2}}, {2, 0, 3, 1}), Shape(DType::kF32, {4, 6}));
}

TEST(Reshard, AllPairsOnEveryMeshUpTo2x2x2) {
  const std::vector<std::vector<MeshAxis>> meshes = {
      {{"x", 2}}, {{"x", 4}}, {{"x", 8}}, {{"x", 2}, {"y", 2}}, {{"x", 2}, {"y", 4}}, {{"x", 2}, {"y", 2}, {"z", 2}}};
  for (const std::vector<MeshAxis>& axes : meshes) {
    std::vector<int64_t> order;  // backwards
    for (int64_t d = MakeMesh(axes)->size(); d-- > 0;) order.push_back(d);
    CheckAllPairs(MakeMesh(axes, order), Shape(DType::kS32, {8, 8}));
    CheckAllPairs(MakeMesh(axes), Shape(DType::kS32, {9, 3}));
  }
}
TEST(Reshard, AllPairsOf3DArraysOn2x2) {
  CheckAllPairs(MakeMesh({{"x", 2}, {"y", 2}}), Shape(DType::kS32, {4, 2, 6}));
  CheckAllPairs(MakeMesh({{"x", 2}, {"y", 2}}), Shape(DType::kS32, {3, 5, 1}));
}

TEST(Reshard, SubAxes) {
  const MeshRef mesh = MakeMesh({{"x", 4}, {"y", 2}});
  const AxisRef major{0, 1, 2}, minor{0, 2, 2}, whole{0, 1, 4}, y{1, 1, 2};
  const std::vector<AxisList> lists = {{}, {major}, {minor}, {whole}, {minor, y}, {y, major}, {minor, major}};
  std::vector<Sharding> all;
  for (const AxisList& list : lists) {
    for (int d = 0; d < 2; ++d) {
      Sharding sharding = Sharding::Replicated(mesh, 2).Closed();
      sharding.dims[d].axes = list;
      all.push_back(sharding);
    }
  }
  for (const Sharding& from : all) {
    for (const Sharding& to : all) CheckReshard(from, to, Shape(DType::kF32, {8, 12}));
  }
}

TEST(Reshard, PartialSums) {
  const MeshRef mesh = MakeMesh({{"x", 2}, {"y", 2}, {"z", 2}});
  const std::vector<Sharding> all = AllShardings(mesh);
  for (const Sharding& placed : all) {
    AxisList free = UnusedAxes(*mesh, placed.DimAxes());
    if (free.empty()) continue;
    Sharding from = placed;
    from.unreduced = free;
    for (const Sharding& to : all) {
      CheckReshard(from, to, Shape(DType::kF32, {8, 4}));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Reshard, BecomingPartial) {
  const MeshRef mesh = MakeMesh({{"x", 2}, {"y", 2}});
  Sharding to = Sharding::Replicated(mesh, 2).Closed();
  to.unreduced = {FullAxis(*mesh, 1)};
  for (const Sharding& from : AllShardings(mesh)) {
    CheckReshard(from, to, Shape(DType::kF32, {4, 4}));
    CheckReshard(from, to, Shape(DType::kS32, {5, 3}));
  }
}

TEST(Reshard, MeshesWithoutCommonAxes) {
  const MeshRef a = MakeMesh({{"x", 2}, {"y", 3}}), b = MakeMesh({{"u", 3}, {"v", 2}}, {5, 3, 1, 0, 2, 4});
  for (const Sharding& from : AllShardings(a)) {
    for (const Sharding& to : AllShardings(b)) CheckReshard(from, to, Shape(DType::kF32, {6, 12}));
  }
}

TEST(Reshard, AnotherDeviceOrder) {
  const MeshRef a = MakeMesh({{"x", 2}, {"y", 2}, {"z", 2}}),
                b = MakeMesh({{"u", 4}, {"v", 2}}, {3, 1, 4, 0, 5, 2, 7, 6});
  for (const Shape& shape : {Shape(DType::kS32, {8, 16}), Shape(DType::kS32, {5, 6})}) {
    for (const Sharding& from : AllShardings(a)) {
      for (const Sharding& to : AllShardings(b)) {
        CheckReshard(from, to, shape);
        CheckReshard(to, from, shape);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(Reshard, PartialSumsToAnotherDeviceOrder) {
  const MeshRef a = MakeMesh({{"x", 2}, {"y", 2}}), b = MakeMesh({{"u", 2}, {"v", 2}}, {3, 1, 0, 2});
  for (const Sharding& placed : AllShardings(a)) {
    Sharding from = placed;
    from.unreduced = UnusedAxes(*a, placed.DimAxes());
    for (const Sharding& to : AllShardings(b)) CheckReshard(from, to, Shape(DType::kS32, {4, 4}));
  }
}

}  // namespace
}  // namespace gangway::equivalence
