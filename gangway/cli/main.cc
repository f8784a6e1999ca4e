#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "CLI/CLI.hpp"
#include "absl/synchronization/mutex.h"
#include "gangway/cli/allocation.h"
#include "gangway/cli/command.h"

int main(int argc, char** argv) {
  gangway::cli::KeepLargeMemory();
  using gangway::cli::Action, gangway::cli::AddCommands, gangway::cli::kExitUsage;
  // Debian's abseil looks for lock cycles at every lock, in one table for all threads: a tenth of the time of a launch
  // on eight devices. The tests keep it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app{
      "Gangway partitions JAX programs for a mesh of devices and runs them from one controller.\n"
      "Try: gangway run --devices 8 -- python train.py"};
  Action action;
  AddCommands(app, &action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int code = app.exit(error);
    return code == 0 ? 0 : kExitUsage;
  }
  if (action == nullptr) {
    std::cerr << app.help();
    return kExitUsage;
  }
  const int code = action();
  // Threads of gRPC's may still end what a command has let go of: what is static must be there until the very end.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}
