#include "gangway/cli/settings.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace gangway::cli {
namespace {

std::string VariableOf(const CLI::App& command, const CLI::Option& option) {
  const std::string name = absl::StrCat("GANGWAY_", command.get_name(), "_", option.get_lnames().front());
  return absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}}));
}

bool IsSetting(const CLI::Option& option) {
  if (option.get_lnames().empty() || !option.get_configurable()) return false;
  const std::string& name = option.get_lnames().front();
  return name != "help" && name != "announce-fd";
}

std::string SourceOf(const CLI::App& command, const CLI::Option& option, const std::string& flag,
                     const std::string& value, const std::vector<std::string>& arguments) {
  if (option.count() == 0) return "default";
  for (const std::string& argument : arguments) {
    if (argument == flag || absl::StartsWith(argument, absl::StrCat(flag, "="))) return "flag";
  }
  const std::string variable = VariableOf(command, option);
  const char* set = std::getenv(variable.c_str());
  return set != nullptr && value == set ? variable : "file";
}

}  // namespace

void AddSettings(CLI::App& app) {
  const char* named = std::getenv("GANGWAY_CONFIG");
  app.set_config("--config", named == nullptr ? "" : named,
                 "TOML file with options, a section for each command; default: the one that GANGWAY_CONFIG names",
                 /*config_required=*/named != nullptr);
  app.allow_config_extras(CLI::config_extras_mode::error);
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    for (CLI::Option* option : command->get_options()) {
      if (IsSetting(*option)) option->envname(VariableOf(*command, *option));
    }
  }
}

std::string DescribeSettings(const CLI::App& command, const std::vector<std::string>& arguments) {
  std::string text = absl::StrFormat("%-20s %-30s %s\n", "OPTION", "VALUE", "FROM");
  for (const CLI::Option* option : command.get_options()) {
    if (!IsSetting(*option)) continue;
    const std::string flag = absl::StrCat("--", option->get_lnames().front());
    const std::string value = option->count() > 0 ? absl::StrJoin(option->results(), " ") : option->get_default_str();
    absl::StrAppendFormat(&text, "%-20s %-30s %s\n", flag, value, SourceOf(command, *option, flag, value, arguments));
  }
  return text;
}

}  // namespace gangway::cli
