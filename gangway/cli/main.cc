#include <cstdio>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "gangway/cli/command.h"
#include "gangway/cli/compiler_commands.h"

int main(int argc, char** argv) {
  using namespace gangway::cli;  // NOLINT: this file is the list of commands
  // Debian's abseil looks for lock cycles at every lock, in one table for all threads: a tenth of the time of a launch
  // on eight devices. The tests keep it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app{
      "Gangway partitions JAX programs for a mesh of devices and runs them from one controller.\n"
      "Try: gangway run --devices 8 -- python train.py"};
  app.name("gangway");
  app.set_version_flag("--version", "gangway 0.1.0");
  app.require_subcommand(1);
  Action action;
  AddRunCommand(app, &action);
  AddServeCommand(app, &action);
  AddControllerCommand(app, &action);
  AddWorkerCommand(app, &action);
  AddTopCommand(app, &action);
  AddTraceCommand(app, &action);
  AddOptCommand(app, &action);
  AddPartitionCommand(app, &action);
  AddExplainCommand(app, &action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int code = app.exit(error);
    return code == 0 ? 0 : kExitUsage;
  }
  return action();
}
