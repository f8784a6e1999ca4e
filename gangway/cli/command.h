// The commands of the `gangway` executable.
#pragma once

#include <functional>
#include <memory>

#include "CLI/CLI.hpp"
#include "gangway/cli/exit_code.h"

namespace gangway::cli {

// What a command does once its options are parsed; returns the process's exit code.
using Action = std::function<int()>;

// Each adds one subcommand with its options and help to `app` and, when it is the one chosen, sets `*action`. Nothing
// below cli/ reads a flag or the environment: commands turn them into option values.
void AddRunCommand(CLI::App& app, Action* action);
void AddServeCommand(CLI::App& app, Action* action);
void AddControllerCommand(CLI::App& app, Action* action);
void AddWorkerCommand(CLI::App& app, Action* action);
void AddTopCommand(CLI::App& app, Action* action);
void AddTraceCommand(CLI::App& app, Action* action);
void AddDoctorCommand(CLI::App& app, Action* action);
void AddDiffCommand(CLI::App& app, Action* action);
void AddConfigCommand(CLI::App& app, Action* action);

// All of them, with what they take from the environment and from files.
void AddCommands(CLI::App& app, Action* action);

// What a controller's tunnel leads to, as both ends name it.
inline constexpr char kClientsPort[] = "clients", kCallbacksPort[] = "callbacks";

}  // namespace gangway::cli
