// Random programs, whole against partitioned. A failure prints its seed and both programs.
#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/equivalence/equivalence.h"
#include "tests/equivalence/random_module.h"

namespace gangway::equivalence {
namespace {

// GANGWAY_SEEDS=n runs more of them, GANGWAY_FIRST_SEED=s others.
int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

void RunSeeds(const RandomOptions& random, bool propagate) {
  const int64_t first = FromEnvironment("GANGWAY_FIRST_SEED", 1), count = FromEnvironment("GANGWAY_SEEDS", 1000);
  for (int64_t seed = first; seed < first + count; ++seed) {
    CheckOptions options;
    options.seed = static_cast<uint64_t>(seed);
    options.propagate = propagate;
    options.empty_shards = seed % 2 == 0;
    options.passes = true;
    const absl::Status status = CheckEquivalent(*RandomModule(static_cast<uint64_t>(seed), random), options);
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message();
  }
}

TEST(RandomModules, EveryInstructionSharded) {
  RandomOptions options;
  options.shard_everything = true;
  RunSeeds(options, false);
}

TEST(RandomModules, SomeAnnotatedTheRestCompleted) { RunSeeds({}, true); }

}  // namespace
}  // namespace gangway::equivalence
