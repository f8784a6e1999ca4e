// Every *.scenario beside this file, with many seeds. A failure prints seed and trace.
#include "tests/runtime/scenario.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace gangway {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int Seeds() {
  const char* seeds = std::getenv("GANGWAY_SCENARIO_SEEDS");
  return seeds == nullptr ? 100 : std::atoi(seeds);
}

TEST(ScenarioTest, AllFilesAllSeeds) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/runtime")) {
    if (entry.path().extension() != ".scenario") continue;
    ++files;
    const std::string text = ReadFile(entry.path());
    for (int seed = 0; seed < Seeds(); ++seed) {
      auto trace = RunScenario(text, seed);
      ASSERT_TRUE(trace.ok()) << entry.path() << ": " << trace.status();
      const std::string wrong = CheckTrace(text, *trace);
      ASSERT_EQ(wrong, "") << entry.path() << " with seed " << seed << ":\n" << absl::StrJoin(*trace, "\n");
      ASSERT_EQ(*RunScenario(text, seed), *trace) << entry.path() << ": seed " << seed << " is not repeatable";
    }
  }
  EXPECT_GT(files, 0) << "run from the root of the repository";
}

TEST(ScenarioTest, MistakesAreNamed) {
  EXPECT_EQ(RunScenario("worker w0\nfrobnicate", 0).status().message(), "line 2: unknown command frobnicate");
  EXPECT_EQ(CheckTrace("# CHECK: b\n# CHECK: a", {"1ms a", "2ms b"}), "missing, or too early: a");
  EXPECT_EQ(CheckTrace("# CHECK-NOT: a", {"1ms a"}), "must not be: 1ms a");
}

}  // namespace
}  // namespace gangway
