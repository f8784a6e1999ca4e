// Collectives in halves, in an order in which they overlap, give what they gave before.
#include "gangway/compile/overlap.h"

#include "gangway/compile/start_done.h"
#include "gangway/cost/machine.h"
#include "gangway/hlo/text.h"
#include "gtest/gtest.h"
#include "tests/equivalence/kept.h"

namespace gangway::equivalence {
namespace {

constexpr uint64_t kSeeds = 200;

TEST(Overlap, HalvesGiveWhatTheWholeGave) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto before = RandomPerDevice(seed);
    ASSERT_TRUE(before.ok()) << before.status();
    const std::unique_ptr<hlo::Module> after = (*before)->Clone();
    compile::StartAndAwaitCollectives(after.get());
    const absl::Status kept = CheckKept(**before, *after, (*before)->config().num_partitions, seed);
    ASSERT_TRUE(kept.ok()) << "seed " << seed << ": " << kept;
  }
}

TEST(Overlap, OrdersKeepWhatProgramsCompute) {
  int ordered = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto before = RandomPerDevice(seed);
    ASSERT_TRUE(before.ok()) << before.status();
    const std::unique_ptr<hlo::Module> after = compile::OverlapCollectives(**before, *cost::MachineByName("cpu"));
    if (after == nullptr) continue;
    ++ordered;
    const absl::Status kept = CheckKept(**before, *after, (*before)->config().num_partitions, seed);
    ASSERT_TRUE(kept.ok()) << "seed " << seed << ": " << kept;
    // What is printed can be read again, halves and all.
    const auto read = hlo::ParseModule(hlo::PrintModule(*after));
    ASSERT_TRUE(read.ok()) << "seed " << seed << ": " << read.status();
    EXPECT_EQ(hlo::PrintModule(**read), hlo::PrintModule(*after));
  }
  EXPECT_GT(ordered, static_cast<int>(kSeeds) / 4);
}

}  // namespace
}  // namespace gangway::equivalence
