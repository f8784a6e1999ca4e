// Whole artifacts: what JAX sends (testdata/jax), the programs of the partition quality suite (testdata/programs), and
// one program with every operation at each bytecode version (testdata/versions).
//
// What each becomes is a text beside it: testdata/golden/NAME.hlo, or NAME.error. GANGWAY_UPDATE_GOLDENS=1 rewrites
// them.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gangway/hlo/text.h"
#include "gangway/stablehlo/reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::stablehlo {
namespace {

namespace fs = std::filesystem;

const fs::path kTestdata = "gangway/stablehlo/testdata";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

std::vector<fs::path> Files(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kTestdata / folder)) {
    if (entry.path().extension() != ".mlir") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Large constants are cut: what they hold is tested elsewhere.
std::string ShortenLines(const std::string& text) {
  constexpr size_t kLongest = 3000;
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) {
    if (line.size() > kLongest) line = absl::StrCat(line.substr(0, 200), "... ", line.size(), " characters");
  }
  return absl::StrJoin(lines, "\n");
}

class GoldenTest : public testing::TestWithParam<fs::path> {};

TEST_P(GoldenTest, IsReadAsWritten) {
  absl::StatusOr<std::unique_ptr<hlo::Module>> module = ReadPortableArtifact(ReadFile(GetParam()));
  const std::string found = module.ok() ? ShortenLines(hlo::PrintModule(**module)) : module.status().ToString() + "\n";
  const fs::path stem = kTestdata / "golden" / GetParam().stem();
  const fs::path golden = stem.string() + (module.ok() ? ".hlo" : ".error");
  if (std::getenv("GANGWAY_UPDATE_GOLDENS") != nullptr) {
    fs::remove(stem.string() + ".hlo");
    fs::remove(stem.string() + ".error");
    std::ofstream(golden, std::ios::binary) << found;
    return;
  }
  ASSERT_TRUE(fs::exists(golden)) << golden << " does not exist; found:\n" << found.substr(0, 1000);
  EXPECT_EQ(found, ReadFile(golden));
}

std::string TestName(const testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !absl::ascii_isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Jax, GoldenTest, testing::ValuesIn(Files("jax")), TestName);

class ProgramTest : public testing::TestWithParam<fs::path> {};

TEST_P(ProgramTest, IsReadAndItsTextReadsBack) {
  absl::StatusOr<std::unique_ptr<hlo::Module>> module = ReadPortableArtifact(ReadFile(GetParam()));
  ASSERT_TRUE(module.ok()) << module.status();
  const std::string text = hlo::PrintModule(**module);
  absl::StatusOr<std::unique_ptr<hlo::Module>> again = hlo::ParseModule(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(hlo::PrintModule(**again), text);
}

INSTANTIATE_TEST_SUITE_P(Quality, ProgramTest, testing::ValuesIn(Files("programs")), TestName);

// The same program written for StableHLO 0.9 to 1.17, that is at bytecode versions 0, 1, 3, 4 and 6 and at every
// version of its operations, is the same module.
TEST(VersionsTest, AllVersionsOfAProgramAreTheSameModule) {
  std::string first;
  for (const fs::path& file : Files("versions")) {
    SCOPED_TRACE(file.string());
    absl::StatusOr<std::unique_ptr<hlo::Module>> module = ReadPortableArtifact(ReadFile(file));
    ASSERT_TRUE(module.ok()) << module.status();
    const std::string text = hlo::PrintModule(**module);
    if (first.empty()) first = text;
    EXPECT_EQ(text, first);
  }
  EXPECT_THAT(first, testing::HasSubstr("all-to-all"));
}

}  // namespace
}  // namespace gangway::stablehlo
