// What is gathered again gives what it gave when it was kept.
#include "gangway/compile/gather_again.h"

#include "gangway/cost/peak_memory.h"
#include "gtest/gtest.h"
#include "tests/equivalence/kept.h"

namespace gangway::equivalence {
namespace {

constexpr uint64_t kSeeds = 600;

TEST(GatherAgain, KeepsWhatProgramsComputeInLessMemory) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto before = RandomPerDevice(seed);
    ASSERT_TRUE(before.ok()) << before.status();
    const std::unique_ptr<hlo::Module> after = compile::GatherAgain(**before, /*memory_bytes=*/0);
    if (after == nullptr) continue;
    ++changed;
    const absl::Status kept = CheckKept(**before, *after, (*before)->config().num_partitions, seed);
    ASSERT_TRUE(kept.ok()) << "seed " << seed << ": " << kept;
    EXPECT_LT(cost::PeakMemoryOf(*after).total(), cost::PeakMemoryOf(**before).total()) << "seed " << seed;
  }
  EXPECT_GT(changed, 10);
}

TEST(GatherAgain, LeavesWhatFits) {
  for (uint64_t seed = 1; seed <= kSeeds; seed += 7) {
    const auto module = RandomPerDevice(seed);
    ASSERT_TRUE(module.ok()) << module.status();
    const int64_t enough = (cost::PeakMemoryOf(**module).total() + 4) / 4 * 5;
    EXPECT_EQ(compile::GatherAgain(**module, enough), nullptr) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gangway::equivalence
