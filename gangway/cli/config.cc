// gangway config: what is in force for a command, and where it comes from.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "gangway/cli/command.h"
#include "gangway/cli/settings.h"

namespace gangway::cli {
namespace {

// Parsed by an app of its own, as the command itself would be.
int ShowConfig(const std::vector<std::string>& arguments) {
  CLI::App app("gangway");
  Action action;
  AddCommands(app, &action);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (app.get_subcommands().empty()) {
    std::fprintf(stderr, "gangway config: of which command? gangway --help lists them\n");
    return kExitUsage;
  }
  std::printf("%s", DescribeSettings(*app.get_subcommands().front(), arguments).c_str());
  return 0;
}

}  // namespace

void AddConfigCommand(CLI::App& app, Action* action) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("config", "Print what is in force for a command, and where it comes from");
  command->add_option("COMMAND", *name, "The command, its options behind it")->required();
  command->prefix_command();
  command->callback([name, command, action] {
    std::vector<std::string> arguments = command->remaining();
    arguments.insert(arguments.begin(), *name);
    *action = [arguments] { return ShowConfig(arguments); };
  });
}

}  // namespace gangway::cli
