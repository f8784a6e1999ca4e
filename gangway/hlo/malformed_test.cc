// Damaged HLO, as text and as proto: a module that can be printed and written again, or an error; never a crash. The
// libFuzzer targets (fuzz/hlo_text_fuzz.cc, fuzz/hlo_proto_fuzz.cc) look further; this runs everywhere, also under the
// sanitizers.
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/text.h"
#include "gangway/hlo/verifier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::hlo {
namespace {

using ::testing::HasSubstr;

std::string TestData(const std::string& name) {
  std::ifstream file("gangway/hlo/testdata/" + name);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// xorshift: the same sequence everywhere.
class Sequence {
 public:
  uint64_t Below(uint64_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % bound;
  }

 private:
  uint64_t state_ = 88172645463325252u;
};

// A few bytes changed, a piece repeated, or a piece taken out.
std::string Damage(std::string bytes, Sequence* sequence) {
  for (uint64_t change = 0, changes = 1 + sequence->Below(3); change < changes && !bytes.empty(); ++change) {
    const size_t at = sequence->Below(bytes.size());
    const size_t length = 1 + sequence->Below(16);
    switch (sequence->Below(3)) {
      case 0:
        bytes[at] = static_cast<char>(sequence->Below(256));
        break;
      case 1:
        bytes.insert(sequence->Below(bytes.size()), bytes.substr(at, length));
        break;
      default:
        bytes.erase(at, length);
    }
  }
  return bytes;
}

// What a reader accepts can be printed, verified and, if it verifies, written.
void Use(const Module& module) {
  EXPECT_FALSE(PrintModule(module).empty());
  if (Verify(module).ok()) (void)SerializeModule(module);
}

constexpr int kRounds = 500;

class MalformedTest : public testing::TestWithParam<const char*> {};

TEST_P(MalformedTest, DamagedTextNeverCrashes) {
  const std::string text = TestData(GetParam());
  ASSERT_TRUE(ParseModule(text).ok());
  Sequence sequence;
  int readable = 0;
  for (int round = 0; round < kRounds; ++round) {
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModule(Damage(text, &sequence));
    if (!module.ok()) continue;
    ++readable;
    Use(**module);
  }
  EXPECT_LT(readable, kRounds);
}

TEST_P(MalformedTest, DamagedProtoNeverCrashes) {
  absl::StatusOr<std::unique_ptr<Module>> whole = ParseModule(TestData(GetParam()));
  ASSERT_TRUE(whole.ok());
  absl::StatusOr<std::string> bytes = SerializeModule(**whole);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  Sequence sequence;
  int readable = 0;
  for (int round = 0; round < kRounds; ++round) {
    absl::StatusOr<std::unique_ptr<Module>> module = DeserializeModule(Damage(*bytes, &sequence));
    if (!module.ok()) continue;
    ++readable;
    Use(**module);
  }
  EXPECT_LT(readable, kRounds);
}

INSTANTIATE_TEST_SUITE_P(Modules, MalformedTest,
                         testing::Values("cond_while.spmd.txt", "families_linalg.txt", "gather_scatter.txt"));

TEST(MalformedTest, AttributesAreBounded) {
  std::string text = "HloModule m\n\nENTRY main {\n  ROOT x = f32[] parameter(0)";
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&text, ", a", i, "=1");
  EXPECT_THAT(ParseModule(text + "\n}\n").status().message(), HasSubstr("at most 256 attributes"));
}

TEST(MalformedTest, CallsThatDoubleAtEveryLevelTakeNoTime) {
  std::string text = "HloModule m\n\nf0 {\n  ROOT x = f32[] parameter(0)\n}\n";
  const int levels = 200;
  for (int i = 1; i <= levels; ++i) {
    absl::StrAppend(&text, "\nf", i, " {\n  x = f32[] parameter(0)\n  y = f32[] call(x), to_apply=f", i - 1,
                    "\n  ROOT z = f32[] call(y), to_apply=f", i - 1, "\n}\n");
  }
  absl::StrAppend(&text, "\nENTRY main {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f", levels,
                  "\n}\n");
  auto module = ParseModule(text);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_FALSE((*module)->entry()->root()->HasSideEffect());
}

}  // namespace
}  // namespace gangway::hlo
