#include "gangway/cli/command.h"
#include "gangway/cli/compiler_commands.h"
#include "gangway/cli/settings.h"

namespace gangway::cli {

void AddCommands(CLI::App& app, Action* action) {
  app.name("gangway");
  app.set_version_flag("--version", "gangway " GANGWAY_VERSION);
  app.require_subcommand(0, 1);  // none is told of by the caller, a wrong one by its name
  AddRunCommand(app, action);
  AddServeCommand(app, action);
  AddControllerCommand(app, action);
  AddWorkerCommand(app, action);
  AddTopCommand(app, action);
  AddTraceCommand(app, action);
  AddOptCommand(app, action);
  AddPartitionCommand(app, action);
  AddExplainCommand(app, action);
  AddSimulateCommand(app, action);
  AddDiffCommand(app, action);
  AddDoctorCommand(app, action);
  AddConfigCommand(app, action);
  AddSettings(app);
}

}  // namespace gangway::cli
