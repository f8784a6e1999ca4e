#include "gangway/cli/settings.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

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

// "--port", "--port=1", "-o", "-oFILE".
bool IsFlag(const std::string& argument, const CLI::Option& option) {
  const auto starts = [&](const std::string& name) { return absl::StartsWith(argument, absl::StrCat("-", name)); };
  if (std::any_of(option.get_snames().begin(), option.get_snames().end(), starts)) return true;
  const absl::string_view name = absl::string_view(argument).substr(0, argument.find('='));
  const auto is_it = [&](const std::string& long_name) { return name == absl::StrCat("--", long_name); };
  return std::any_of(option.get_lnames().begin(), option.get_lnames().end(), is_it);
}

std::string SourceOf(const CLI::App& command, const CLI::Option& option, const std::string& value,
                     const std::vector<std::string>& arguments) {
  if (option.count() == 0) return "default";
  for (const std::string& argument : arguments) {
    if (IsFlag(argument, option)) return "flag";
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
    absl::StrAppendFormat(&text, "%-20s %-30s %s\n", flag, value, SourceOf(command, *option, value, arguments));
  }
  return text;
}

}  // namespace gangway::cli
