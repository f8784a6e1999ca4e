// Programs in files: StableHLO portable artifacts, HLO text and HloModuleProto, told apart by their content.
#pragma once

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "gangway/hlo/module.h"

namespace gangway::cli {

// "-" reads standard input. The module passes hlo::Verify. Errors name the file and what it was taken for.
absl::StatusOr<std::unique_ptr<hlo::Module>> ReadProgram(const std::string& path);

// FILE, as ReadProgram takes it.
CLI::Option* AddProgramFile(CLI::App& command, std::string* path);

// "-" writes to standard output.
absl::Status WriteFile(const std::string& path, const std::string& content);

}  // namespace gangway::cli
