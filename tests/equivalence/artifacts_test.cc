// Programs that stock JAX sent: the small ones are run whole and partitioned, all of them must compile.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/compile/compile.h"
#include "gangway/hlo/verifier.h"
#include "gangway/passes/passes.h"
#include "gangway/stablehlo/reader.h"
#include "gtest/gtest.h"
#include "tests/equivalence/equivalence.h"

namespace gangway::equivalence {
namespace {

constexpr char kTestdata[] = "gangway/stablehlo/testdata";

std::vector<std::filesystem::path> Artifacts(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(kTestdata) / folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<std::unique_ptr<hlo::Module>> Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return stablehlo::ReadPortableArtifact(bytes.str());
}

// The evaluator has no host to call back to and no plugin's libraries.
bool NeedsMore(const hlo::Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      const auto* call = instruction->attr_if<hlo::CustomCallAttr>();
      if (call == nullptr || call->target == "Sharding") continue;
      if (call->target != "SPMDFullToShardShape" && call->target != "SPMDShardToFullShape") return true;
    }
  }
  return false;
}

TEST(Artifacts, SmallOnesComputeTheSamePartitioned) {
  int run = 0;
  for (const auto& path : Artifacts("jax")) {
    // Says that a result is replicated which differs between devices (check_vma=False): any of them is right.
    if (path.stem() == "q09_scan_shardmap_ppermute") continue;
    auto module = Read(path);
    if (!module.ok() || (*module)->config().num_partitions < 2 || NeedsMore(**module)) continue;
    ASSERT_TRUE(passes::RunInlineCalls(**module).ok());
    CheckOptions options;
    options.tolerance = 1e-3;  // sums over random numbers, then exponentials of them
    const absl::Status status = CheckEquivalent(**module, options);
    EXPECT_TRUE(status.ok()) << path << ": " << status.message();
    ++run;
  }
  EXPECT_GT(run, 20);
}

// Functions that only other platforms have, or nobody.
constexpr const char* kUnknownFunctions[] = {"cusolver_potrf_ffi", "cusolver_getrf_ffi", "LuDecomposition",
                                             "ApproxTopK",         "my_target",          "foo"};

bool NamesAnUnknownFunction(const absl::Status& status) {
  return absl::IsUnimplemented(status) &&
         std::any_of(std::begin(kUnknownFunctions), std::end(kUnknownFunctions), [&](const char* name) {
           return absl::StrContains(status.message(), absl::StrCat("custom call to '", name, "'"));
         });
}

TEST(Artifacts, AllCompileOrNameWhatIsUnknown) {
  int compiled = 0;
  for (const std::string folder : {"jax", "programs"}) {
    for (const auto& path : Artifacts(folder)) {
      auto module = Read(path);
      if (!module.ok()) continue;  // refused by the reader, whose tests say why
      compile::CompileOptions options;
      options.num_partitions = (*module)->config().num_partitions;
      const auto program = compile::CompileModule(*std::move(module), options);
      if (NamesAnUnknownFunction(program.status())) continue;
      ASSERT_TRUE(program.ok()) << path << ": " << program.status();
      ++compiled;
      const absl::Status sound = hlo::Verify(*program->per_device);
      EXPECT_TRUE(sound.ok()) << path << ": " << sound;
    }
  }
  EXPECT_GT(compiled, 50);
}

}  // namespace
}  // namespace gangway::equivalence
