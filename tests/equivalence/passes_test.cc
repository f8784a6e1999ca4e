// Every clean-up pass keeps what random programs compute, whole ones and partitioned ones.
#include "gangway/passes/passes.h"

#include "gangway/partition/partition.h"
#include "gangway/propagate/propagate.h"
#include "gtest/gtest.h"
#include "tests/equivalence/kept.h"
#include "tests/equivalence/random_module.h"

namespace gangway::equivalence {
namespace {

constexpr uint64_t kSeeds = 150;

// Runs the pass on a copy, and all passes in a row when `pass` is null.
void CheckPass(const hlo::Module& module, const passes::Pass* pass, int64_t devices, uint64_t seed) {
  std::unique_ptr<hlo::Module> after = module.Clone();
  for (const passes::Pass& each : passes::AllPasses()) {
    if (pass != nullptr && pass->name != each.name) continue;
    ASSERT_TRUE(each.run(*after).ok()) << each.name;
  }
  const std::string name(pass == nullptr ? "all passes" : pass->name);
  const absl::Status kept = CheckKept(module, *after, devices, seed);
  ASSERT_TRUE(kept.ok()) << name << ", seed " << seed << ": " << kept;
}

TEST(Passes, KeepWhatWholeProgramsCompute) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomOptions options;
    options.manual_regions = false;
    std::unique_ptr<hlo::Module> module = RandomModule(seed, options);
    for (const passes::Pass& pass : passes::AllPasses()) CheckPass(*module, &pass, 1, seed);
    CheckPass(*module, nullptr, 1, seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Passes, KeepWhatPartitionedProgramsCompute) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::unique_ptr<hlo::Module> module = RandomModule(seed, {});
    ASSERT_TRUE(propagate::Propagate(*module, {}, nullptr).ok());
    absl::StatusOr<partition::Partitioned> partitioned = partition::PartitionModule(*module);
    ASSERT_TRUE(partitioned.ok()) << partitioned.status();
    int64_t devices = module->config().num_partitions;
    for (const passes::Pass& pass : passes::AllPasses()) CheckPass(*partitioned->module, &pass, devices, seed);
    CheckPass(*partitioned->module, nullptr, devices, seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace gangway::equivalence
