#include "tests/equivalence/crasher.h"

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gangway/base/status.h"
#include "gangway/hlo/text.h"
#include "gangway/hlo/verifier.h"
#include "tests/equivalence/equivalence.h"

namespace gangway::equivalence {

absl::Status RunCrasher(const hlo::Module& module, const CrasherOptions& options) {
  GW_RETURN_IF_ERROR_WITH(hlo::Verify(module), "program");
  CheckOptions check;
  check.seed = options.seed;
  check.propagate = options.propagate;
  check.passes = true;
  return CheckEquivalent(module, check);
}

absl::Status RunCrasherFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  CrasherOptions options;
  const std::string content = text.str();
  const std::vector<std::string> words = absl::StrSplit(content.substr(0, content.find('\n')), ' ');
  for (const std::string& word : words) {
    if (word == "sharded") options.propagate = false;
    if (absl::StartsWith(word, "seed=") && !absl::SimpleAtoi(word.substr(5), &options.seed)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", word));
    }
  }
  GW_ASSIGN_OR_RETURN_WITH(const std::unique_ptr<hlo::Module> module, hlo::ParseModule(content), path);
  return RunCrasher(*module, options);
}

std::string CrasherText(const hlo::Module& module, const CrasherOptions& options, const std::string& failure) {
  return absl::StrCat("// ", options.propagate ? "completed" : "sharded", " seed=", options.seed, " failed: ", failure,
                      "\n", hlo::PrintModule(module));
}

}  // namespace gangway::equivalence
