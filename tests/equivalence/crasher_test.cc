// Programs that once failed, kept in fuzz/crashers/partition, do not fail again; and small failures are found small.
#include "tests/equivalence/crasher.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "gangway/hlo/builder.h"
#include "gtest/gtest.h"
#include "tests/equivalence/minimize.h"
#include "tests/equivalence/random_module.h"

namespace gangway::equivalence {
namespace {

TEST(Crashers, StayFixed) {
  std::vector<std::string> paths;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator("fuzz/crashers/partition", missing)) {
    if (entry.path().extension() == ".hlo") paths.push_back(entry.path().string());
  }
  ASSERT_FALSE(paths.empty()) << missing.message();
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const absl::Status status = RunCrasherFile(path);
    EXPECT_TRUE(status.ok()) << path << ": " << status;
  }
}

bool Has(const hlo::Module& module, hlo::Opcode opcode) {
  const auto& instructions = module.entry()->instructions();
  return std::any_of(instructions.begin(), instructions.end(), [&](const auto& i) { return i->opcode() == opcode; });
}

TEST(Minimize, LeavesWhatTheFailureNeeds) {
  for (uint64_t seed = 0;; ++seed) {
    const std::unique_ptr<hlo::Module> module = RandomModule(seed, {});
    if (!Has(*module, hlo::Opcode::kDot)) continue;
    const auto small = Minimize(*module, [](const hlo::Module& m) { return Has(m, hlo::Opcode::kDot); });
    EXPECT_TRUE(Has(*small, hlo::Opcode::kDot));
    EXPECT_LE(small->entry()->size(), 12) << small->ToString();
    return;
  }
}

}  // namespace
}  // namespace gangway::equivalence
