// What is gathered again gives what it gave when it was kept.
#include "gangway/compile/gather_again.h"

#include "absl/strings/str_cat.h"
#include "gangway/cost/peak_memory.h"
#include "gangway/hlo/text.h"
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

// There is nothing to take apart: the program gives all of it as it is.
TEST(GatherAgain, LeavesACombinedGatherThatIsTheResult) {
  const auto module = hlo::ParseModule(R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT both = (f32[8], f32[8]) all-gather(x, y), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
})");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(compile::GatherAgain(**module, 1), nullptr);
}

// A program may be as deep as it likes.
TEST(GatherAgain, LooksThroughFewCasts) {
  std::string text = R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[4] parameter(0)
  c0 = f32[8] all-gather(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  first = f32[8] sine(c0)
)";
  constexpr int kDeep = 200'000;
  for (int i = 1; i <= kDeep; ++i) absl::StrAppend(&text, "  c", i, " = f32[8] copy(c", i - 1, ")\n");
  absl::StrAppend(&text, "  ROOT r = f32[8] add(first, c", kDeep, ")\n}\n");
  const auto module = hlo::ParseModule(text);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(compile::GatherAgain(**module, 1), nullptr);
}

}  // namespace
}  // namespace gangway::equivalence
