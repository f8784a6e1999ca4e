// gangway diff: the first array in which two recorded runs differ.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/cli/command.h"

namespace gangway::cli {
namespace {

using Json = nlohmann::json;

bool IsRecordedRun(Json& run) {
  if (!run.is_object() || !run["program"].is_string() || !run["run"].is_number_integer()) return false;
  if (!run["outputs"].is_array()) return false;
  return std::all_of(run["outputs"].begin(), run["outputs"].end(), [](Json& output) {
    return output.is_object() && output["name"].is_string() && output["shape"].is_string() &&
           output["hash"].is_string();
  });
}

// What `--record` wrote, in the order in which runs ended.
absl::StatusOr<std::vector<Json>> ReadRecord(const std::string& path) {
  std::ifstream file(path);
  if (!file.is_open()) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  std::vector<Json> runs;
  for (std::string line; std::getline(file, line);) {
    Json run = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!IsRecordedRun(run))
      return absl::InvalidArgumentError(absl::StrCat(path, ":", runs.size() + 1, ": is no recorded run"));
    runs.push_back(std::move(run));
  }
  return runs;
}

std::pair<std::string, int64_t> KeyOf(const Json& run) { return {run["program"], run["run"]}; }

// "program jit_step, run 20" and, where an output differs, ", output 3 (jit(step)/add, f32[8,8])".
std::string Name(const Json& run, size_t output) {
  std::string name = absl::StrCat("program ", run["program"].get<std::string>(), ", run ", run["run"].get<int64_t>());
  if (output >= run["outputs"].size()) return name;
  const Json& of = run["outputs"][output];
  return absl::StrCat(name, ", output ", output, " (", of["name"].get<std::string>(), ", ",
                      of["shape"].get<std::string>(), ")");
}

std::optional<std::string> Difference(const Json& a, const Json& b) {
  if (a["outputs"].size() != b["outputs"].size()) return absl::StrCat(Name(a, SIZE_MAX), ": other outputs");
  for (size_t i = 0; i < a["outputs"].size(); ++i) {
    if (a["outputs"][i] != b["outputs"][i]) return Name(a, i);
  }
  return std::nullopt;
}

// The first difference in the order of the first record; programs of one name are told apart by what they give.
absl::StatusOr<std::optional<std::string>> FirstDifference(const std::string& path_a, const std::string& path_b) {
  GW_ASSIGN_OR_RETURN(const std::vector<Json> a, ReadRecord(path_a));
  GW_ASSIGN_OR_RETURN(const std::vector<Json> b, ReadRecord(path_b));
  std::map<std::pair<std::string, int64_t>, std::vector<const Json*>> of_b;
  for (const Json& run : b) of_b[KeyOf(run)].push_back(&run);
  std::map<std::pair<std::string, int64_t>, size_t> seen;
  for (const Json& run : a) {
    const auto key = KeyOf(run);
    const std::vector<const Json*>& others = of_b[key];
    const size_t index = seen[key]++;
    if (index >= others.size()) return absl::StrCat(Name(run, SIZE_MAX), ": only in ", path_a);
    if (auto difference = Difference(run, *others[index])) return difference;
  }
  if (a.size() < b.size()) return absl::StrCat(b.size() - a.size(), " runs more in ", path_b);
  return std::nullopt;
}

int Diff(const std::string& a, const std::string& b) {
  const absl::StatusOr<std::optional<std::string>> difference = FirstDifference(a, b);
  if (!difference.ok()) {
    std::fprintf(stderr, "gangway diff: %s\n", std::string(difference.status().message()).c_str());
    return kExitUsage;
  }
  if (!difference->has_value()) return 0;
  std::printf("first difference: %s\n", (*difference)->c_str());
  return kExitFailure;
}

}  // namespace

void AddDiffCommand(CLI::App& app, Action* action) {
  auto files = std::make_shared<std::pair<std::string, std::string>>();
  CLI::App* command = app.add_subcommand(
      "diff",
      "Name the first array in which two runs differ: their records, by gangway run --record; exit code 1 then");
  command->add_option("A", files->first, "Record of one run")->required();
  command->add_option("B", files->second, "Record of the other")->required();
  command->callback([files, action] { *action = [files] { return Diff(files->first, files->second); }; });
}

}  // namespace gangway::cli
