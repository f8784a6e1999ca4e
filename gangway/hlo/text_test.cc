#include "gangway/hlo/text.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::hlo {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string ReadGzip(const fs::path& path) {
  FILE* pipe = popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
  std::string text;
  char buffer[1 << 16];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  pclose(pipe);
  return text;
}

// print(parse(text)) is text, byte for byte.
void ExpectRoundTrip(const std::string& text, const std::string& what) {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModule(text);
  ASSERT_TRUE(module.ok()) << what << ": " << module.status();
  std::string printed = PrintModule(**module);
  if (printed == text) return;
  std::istringstream expected(text), actual(printed);
  std::string want, got;
  for (int line = 1; std::getline(expected, want); ++line) {
    std::getline(actual, got);
    ASSERT_EQ(got, want) << what << " line " << line;
  }
  FAIL() << what << ": more text than was read";
}

TEST(TextTest, TestdataRoundTrips) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator("gangway/hlo/testdata")) {
    if (entry.path().extension() != ".txt") continue;
    ExpectRoundTrip(ReadFile(entry.path()), entry.path().filename());
    ++files;
  }
  EXPECT_GE(files, 4);
}

// XLA's own dumps; present only beside a checkout that has the shared material.
TEST(TextTest, XlaDumpsRoundTrip) {
  const char* named = std::getenv("GANGWAY_HLO_DUMPS");
  const fs::path folder = named != nullptr ? named : "../shared/quality/hlo";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not there";
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".gz") continue;
    ExpectRoundTrip(ReadGzip(entry.path()), entry.path().filename());
    ++files;
  }
  EXPECT_EQ(files, 62);
}

}  // namespace
}  // namespace gangway::hlo
