#include "gangway/partition/demands.h"

#include <memory>

#include "gangway/hlo/text.h"
#include "gtest/gtest.h"

namespace gangway::partition {
namespace {

TEST(Demands, OfOthersForTheSameValue) {
  const auto module =
      *hlo::ParseModule("HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n");
  const hlo::Instruction *value = module->entry()->parameter(0), *reader = module->entry()->root();
  const auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", 2}}));
  const Sharding whole = Sharding::Replicated(mesh, 1);
  Demands demands;
  demands.Add({value, 0}, whole, reader);
  EXPECT_TRUE(demands.ByOthers({value, 0}, whole, value));
  EXPECT_FALSE(demands.ByOthers({value, 0}, whole, reader));
  EXPECT_EQ(demands.Of({value, 0}).size(), 1);
}

TEST(Demands, OfValuesMadeOnTheWayAreNobodyElses) {
  const auto module = *hlo::ParseModule("HloModule m\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n");
  const auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", 2}}));
  const Sharding whole = Sharding::Replicated(mesh, 1);
  Demands demands;
  demands.Add({nullptr, 0}, whole, module->entry()->root());
  EXPECT_FALSE(demands.ByOthers({nullptr, 0}, whole, nullptr));
}

}  // namespace
}  // namespace gangway::partition
