// Completion of random programs: every sharding is legal, what the program said stays, and nothing is split further
// than it has elements unless the program said so.
#include <gtest/gtest.h>

#include <map>

#include "gangway/mesh/geometry.h"
#include "gangway/propagate/propagate.h"
#include "tests/equivalence/random_module.h"

namespace gangway::equivalence {
namespace {

using Annotations = std::map<std::string, Shardings>;

Annotations AnnotationsOf(const hlo::Module& module) {
  Annotations annotations;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->has_sharding()) annotations[instruction->name()] = *instruction->shardings();
    }
  }
  return annotations;
}

void ExpectLegal(const hlo::Instruction& instruction, const Annotations& before) {
  const std::vector<Shape> leaves = Leaves(instruction.shape());
  ASSERT_EQ(instruction.shardings()->size(), leaves.size()) << instruction.name();
  const auto said = before.find(instruction.name());
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const Sharding& sharding = (*instruction.shardings())[leaf];
    if (!leaves[leaf].IsArray()) continue;
    ASSERT_TRUE(ValidateSharding(sharding, leaves[leaf]).ok()) << instruction.name() << " " << sharding.ToString();
    for (int64_t dim = 0; dim < leaves[leaf].rank(); ++dim) {
      EXPECT_FALSE(sharding.dims[dim].open);
      if (said != before.end() && !said->second[leaf].dims[dim].open) {
        EXPECT_EQ(sharding.ShardCount(dim), said->second[leaf].ShardCount(dim)) << instruction.name();
      }
    }
    const bool closed = said != before.end() && said->second[leaf].Closed() == said->second[leaf];
    if (closed) {
      EXPECT_TRUE(SamePlacement(sharding, said->second[leaf], leaves[leaf])) << instruction.name();
    }
  }
}

TEST(Completion, RandomProgramsGetLegalShardings) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::unique_ptr<hlo::Module> module = RandomModule(seed, RandomOptions{});
    const Annotations before = AnnotationsOf(*module);
    ASSERT_TRUE(propagate::Propagate(*module, {}, nullptr).ok());
    for (const auto& instruction : module->entry()->instructions()) ExpectLegal(*instruction, before);

    // What is complete stays as it is.
    const Annotations complete = AnnotationsOf(*module);
    ASSERT_TRUE(propagate::Propagate(*module, {}, nullptr).ok());
    for (const auto& instruction : module->entry()->instructions()) ExpectLegal(*instruction, complete);
  }
}

}  // namespace
}  // namespace gangway::equivalence
