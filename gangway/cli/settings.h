// Options from the environment and from a file, under the names they have as flags.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace gangway::cli {

// Every option `--some-option` of a command COMMAND may also come from GANGWAY_COMMAND_SOME_OPTION and from a TOML file
// (--config FILE or GANGWAY_CONFIG), section [COMMAND], key some-option. A flag is stronger than the file, the file
// than the environment. Call once all commands are there.
void AddSettings(CLI::App& app);

// What is in force for a command that was parsed from `arguments`: a line "option value source" for each option.
std::string DescribeSettings(const CLI::App& command, const std::vector<std::string>& arguments);

}  // namespace gangway::cli
