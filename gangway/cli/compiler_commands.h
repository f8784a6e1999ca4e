// The commands that work on program files.
#pragma once

#include "gangway/cli/command.h"

namespace gangway::cli {

void AddPartitionCommand(CLI::App& app, Action* action);
void AddExplainCommand(CLI::App& app, Action* action);
void AddSimulateCommand(CLI::App& app, Action* action);
void AddOptCommand(CLI::App& app, Action* action);

}  // namespace gangway::cli
