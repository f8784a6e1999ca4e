#include "gangway/cli/check_options.h"

#include <fstream>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace gangway::cli {

std::vector<std::string> CheckOptions::Arguments() const {
  std::vector<std::string> arguments;
  if (replicas_every > 0) arguments.push_back(absl::StrCat("--check-replicas=", replicas_every));
  if (nans) arguments.push_back("--check-nans");
  if (!record_file.empty()) arguments.push_back(absl::StrCat("--record=", record_file));
  return arguments;
}

void AddCheckOptions(CLI::App& command, CheckOptions* options) {
  command
      .add_flag("--check-replicas{10}", options->replicas_every,
                "Compare the replicas of every output at every tenth run of a program, or at every =N-th; the first "
                "that differs is named")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command.add_flag("--check-nans", options->nans, "Name the first program, run and output with a NaN");
  command.add_option("--record", options->record_file,
                     "Write the hash of every output of every run to this file, for `gangway diff`");
}

absl::StatusOr<controller::InspectOptions> MakeInspectOptions(const CheckOptions& options) {
  controller::InspectOptions inspect;
  inspect.replicas_every = options.replicas_every;
  inspect.nans = options.nans;
  inspect.report = [](const std::string& line) { spdlog::error("{}", line); };
  if (options.record_file.empty()) return inspect;
  auto file = std::make_shared<std::ofstream>(options.record_file);  // shared by the copies of the function
  if (!file->is_open()) return absl::UnavailableError(absl::StrCat("--record: cannot write ", options.record_file));
  inspect.record = [file](const std::string& line) { *file << line << std::endl; };
  return inspect;
}

}  // namespace gangway::cli
