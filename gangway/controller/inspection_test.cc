#include "gangway/controller/inspection.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

ArraySpec Spec(DimVector dims, const Sharding& sharding) {
  ArraySpec spec;
  spec.dtype = DType::kF32;
  spec.dims = std::move(dims);
  for (int64_t i = 0; i < sharding.mesh->size(); ++i) spec.devices.push_back(DeviceId(static_cast<int>(i)));
  spec.sharding = sharding;
  return spec;
}

Sharding RowsOver(const Mesh& mesh, int axis) {
  Sharding sharding = Sharding::Replicated(std::make_shared<const Mesh>(mesh), 2);
  sharding.dims[0].axes = {FullAxis(mesh, axis)};
  return sharding;
}

TEST(InspectionTest, PartsFollowTheMesh) {
  const Mesh mesh = *Mesh::Make({{"x", 2}, {"y", 2}});
  EXPECT_THAT(PartsOf(Spec({4, 3}, RowsOver(mesh, 0))), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(PartsOf(Spec({4, 3}, RowsOver(mesh, 1))), ElementsAre(0, 1, 0, 1));
  EXPECT_TRUE(HasReplicas({0, 1, 0, 1}));
  EXPECT_FALSE(HasReplicas({0, 1, 2}));
  const Mesh permuted = *Mesh::Make({{"x", 2}, {"y", 2}}, {3, 1, 0, 2});
  EXPECT_THAT(PartsOf(Spec({4, 3}, RowsOver(permuted, 0))), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(PartsOf(Spec({3, 3}, RowsOver(mesh, 0))), IsEmpty());  // padded
  ArraySpec unknown = Spec({4, 3}, RowsOver(mesh, 0));
  unknown.sharding.reset();
  EXPECT_THAT(PartsOf(unknown), IsEmpty());
}

Inspection TwoOutputs() {
  Inspection inspection;
  inspection.program = "jit_step";
  inspection.run = 20;
  inspection.devices = {"worker0 cpu:0", "worker0 cpu:1", "worker1 cpu:0", "worker1 cpu:1"};
  inspection.outputs = {{0, "", "f32[]", {0, 0, 0, 0}, {{7}, {7}, {7}, {7}}},
                        {3, "jit(step)/add", "f32[8]", {0, 1, 0, 1}, {{1}, {2}, {1}, {2}}}};
  return inspection;
}

TEST(InspectionTest, TheFirstReplicaThatDiffersIsNamed) {
  Inspection inspection = TwoOutputs();
  EXPECT_EQ(FindDivergence(inspection), std::nullopt);
  inspection.outputs[1].digests[3].hash = 5;
  EXPECT_THAT(FindDivergence(inspection), Optional(std::string("program jit_step, run 20, output 3 (jit(step)/add, "
                                                               "f32[8]): replicas differ: worker0 cpu:1 and "
                                                               "worker1 cpu:1")));
  inspection.outputs[1].part_of.clear();  // nothing is known
  EXPECT_EQ(FindDivergence(inspection), std::nullopt);
}

TEST(InspectionTest, TheFirstNanIsNamed) {
  Inspection inspection = TwoOutputs();
  EXPECT_EQ(FindNan(inspection), std::nullopt);
  inspection.outputs[0].digests[2].has_nan = true;
  EXPECT_THAT(FindNan(inspection),
              Optional(std::string("program jit_step, run 20, output 0 (f32[]): NaN on worker1 cpu:0")));
}

TEST(InspectionTest, RecordsAreEqualForEqualArrays) {
  Inspection a = TwoOutputs(), b = TwoOutputs();
  EXPECT_EQ(RecordOf(a), RecordOf(b));
  b.outputs[1].digests[1].hash = 5;
  EXPECT_NE(RecordOf(a), RecordOf(b));
}

}  // namespace
}  // namespace gangway::controller
