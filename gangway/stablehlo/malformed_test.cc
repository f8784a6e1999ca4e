// Damaged artifacts: every truncation and many changed bytes give a module or an error, never a crash. The libFuzzer
// target (fuzz/stablehlo_fuzz.cc) looks further; this runs everywhere, also under the sanitizers.
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "gangway/stablehlo/reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::stablehlo {
namespace {

using ::testing::HasSubstr;

std::string Artifact(const std::string& name) {
  std::ifstream file("gangway/stablehlo/testdata/" + name, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// xorshift: the same sequence everywhere.
class Sequence {
 public:
  uint64_t Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }

 private:
  uint64_t state_ = 88172645463325252u;
};

class MalformedTest : public testing::TestWithParam<const char*> {};

TEST_P(MalformedTest, EveryTruncationIsAnError) {
  const std::string artifact = Artifact(GetParam());
  ASSERT_TRUE(ReadPortableArtifact(artifact).ok());
  for (size_t size = 0; size < artifact.size(); ++size) {
    EXPECT_FALSE(ReadPortableArtifact(absl::string_view(artifact).substr(0, size)).ok()) << size;
  }
}

TEST_P(MalformedTest, ChangedBytesNeverCrash) {
  const std::string artifact = Artifact(GetParam());
  Sequence sequence;
  int readable = 0;
  for (size_t i = 0; i < artifact.size(); ++i) {
    std::string damaged = artifact;
    damaged[i] = static_cast<char>(sequence.Next());
    readable += ReadPortableArtifact(damaged).ok();
  }
  // Many bytes are names or numbers that may be anything.
  EXPECT_GT(readable, 0);
}

TEST_P(MalformedTest, ManyChangesNeverCrash) {
  const std::string artifact = Artifact(GetParam());
  Sequence sequence;
  for (int round = 0; round < 500; ++round) {
    std::string damaged = artifact;
    for (int change = 0; change < 4; ++change) {
      damaged[sequence.Next() % damaged.size()] = static_cast<char>(sequence.Next() % 64);
    }
    (void)ReadPortableArtifact(damaged);
  }
}

INSTANTIATE_TEST_SUITE_P(Artifacts, MalformedTest,
                         testing::Values("jax/p01_shard_map.bc", "jax/p05_sort_while.bc", "jax/rt_1.16.3.bc",
                                         "versions/allops_0.9.0.bc"));

// Sixty functions, each of which calls the one before twice; the first returns its argument.
TEST(MalformedTest, CallsOfNothingButCallsAreBounded) {
  EXPECT_TRUE(absl::IsResourceExhausted(ReadPortableArtifact(Artifact("hostile/calls_of_calls.bc")).status()));
}

TEST(MalformedTest, OtherBytesAreNamed) {
  EXPECT_THAT(ReadPortableArtifact("").status().message(), HasSubstr("magic number"));
  EXPECT_THAT(ReadPortableArtifact("HloModule m").status().message(), HasSubstr("magic number"));
  EXPECT_THAT(ReadPortableArtifact(Artifact("jax/p01_shard_map.bc").substr(0, 100)).status().message(),
              HasSubstr("StableHLO artifact: section 3: byte"));
}

}  // namespace
}  // namespace gangway::stablehlo
