#include <cstdio>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gangway/cli/command.h"
#include "gangway/cli/local_cluster.h"
#include "gangway/cli/signals.h"

namespace gangway::cli {
namespace {

int Serve(const LocalClusterOptions& options) {
  CatchSignals();
  absl::StatusOr<LocalCluster> cluster = LocalCluster::Start(options);
  if (!cluster.ok()) return ExitCodeOf(cluster.status(), "gangway");
  std::printf("gangway: serving %d devices at %s\n", options.devices, cluster->address().c_str());
  std::printf("gangway: GANGWAY_ADDRESS=%s JAX_PLATFORMS=gangway PYTHONPATH=%s python your_script.py\n",
              cluster->address().c_str(), FindPythonFolder().value_or("python").c_str());
  if (!cluster->http_address().empty()) {
    std::printf("gangway: status page http://%s/ (gangway top %s)\n", cluster->http_address().c_str(),
                cluster->http_address().c_str());
  }
  std::fflush(stdout);
  while (CaughtSignal() == 0) {
    absl::SleepFor(absl::Milliseconds(50));
    ExitCodeOf(cluster->Check(), "gangway");  // said; the others go on
    if (!cluster->controller_alive()) return kExitFailure;
  }
  cluster->Stop();
  return 0;
}

}  // namespace

void AddServeCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<LocalClusterOptions>();
  options->http_port = 0;
  CLI::App* command = app.add_subcommand("serve", "Keep a local cluster up for many clients, until interrupted");
  AddLocalClusterOptions(*command, options.get());
  command->callback([options, action] { *action = [options] { return Serve(*options); }; });
}

}  // namespace gangway::cli
