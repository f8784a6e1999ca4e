#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/cli/command.h"
#include "gangway/cli/local_cluster.h"
#include "gangway/cli/process.h"
#include "gangway/cli/signals.h"
#include "gangway/cli/tls_files.h"
#include "gangway/tunnel/entrance.h"

namespace gangway::cli {
namespace {

struct RunOptions {
  LocalClusterOptions cluster;
  std::string connect;      // of a cluster that is up already; "": one of our own
  std::string authorities;  // file of those who may have signed its certificate; "": it is no tunnel
  std::vector<std::string> command;
};

int Fail(const absl::Status& status) { return ExitCodeOf(status, "gangway"); }

// What stock JAX needs to find us, without any import in the script.
std::map<std::string, std::string> ClientEnvironment(const std::string& address, const std::string& python) {
  auto get = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::map<std::string, std::string> environment;
  std::string path = get("PYTHONPATH");
  environment["PYTHONPATH"] = path.empty() ? python : absl::StrCat(python, ":", path);
  environment["GANGWAY_ADDRESS"] = address;
  environment["JAX_BACKEND_TARGET"] = absl::StrCat("grpc://", address);  // for JAX's own `proxy` backend
  environment["IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"] = "true";
  // The client's library warns about every insecure channel and about the end of every session; errors still show.
  if (get("TF_CPP_MIN_LOG_LEVEL").empty()) environment["TF_CPP_MIN_LOG_LEVEL"] = "2";
  // A user's own list stays when it names us, e.g. "gangway,cpu" for a local CPU beside.
  std::string platforms = get("JAX_PLATFORMS");
  bool names_us = absl::StrContains(platforms, "gangway") || absl::StrContains(platforms, "proxy");
  environment["JAX_PLATFORMS"] = names_us ? platforms : "gangway";
  return environment;
}

// Waits for the command; passes signals on, and takes it down when it ignores them. A command in our own group has seen
// the terminal's Ctrl-C itself. `cluster`: null where it is not ours.
int Supervise(Process& command, LocalCluster* cluster, bool shares_group) {
  int passed_on = 0;
  absl::Time kill_at = absl::InfiniteFuture();
  while (true) {
    if (auto ending = command.Wait(absl::Milliseconds(20))) return ending->code;
    if (cluster != nullptr) {
      if (absl::Status status = cluster->Check(); !status.ok()) Fail(status);
    }
    if (CaughtCount() > passed_on) {
      passed_on = CaughtCount();
      if (!shares_group || CaughtSignal() != SIGINT) command.Signal(CaughtSignal());
      kill_at = std::min(kill_at, absl::Now() + absl::Seconds(10));
    }
    if (absl::Now() > kill_at) command.Signal(SIGKILL);
  }
}

// Runs the command with that environment to its end; returns its exit code.
int RunCommand(const std::vector<std::string>& line, std::map<std::string, std::string> environment,
               LocalCluster* cluster) {
  ProcessOptions command_options;
  command_options.command = line;
  command_options.environment = std::move(environment);
  // In a terminal the command shares our group, so that it may read the keyboard and Ctrl-C reaches it; else it gets
  // its own, and everything it starts can be ended with it.
  command_options.own_group = !isatty(STDIN_FILENO);
  absl::StatusOr<Process> command = Process::Start(command_options);
  if (!command.ok()) {
    Fail(command.status());
    return 127;
  }
  return Supervise(*command, cluster, !command_options.own_group);
}

int RunHere(const RunOptions& options, const std::string& python) {
  absl::StatusOr<LocalCluster> cluster = LocalCluster::Start(options.cluster);
  if (!cluster.ok()) return CaughtSignal() != 0 ? 128 + CaughtSignal() : Fail(cluster.status());
  const int code = RunCommand(options.command, ClientEnvironment(cluster->address(), python), &*cluster);
  cluster->Stop();
  return code;
}

// On a cluster that is up already.
int RunThere(const RunOptions& options, const std::string& python) {
  if (options.authorities.empty()) {
    return RunCommand(options.command, ClientEnvironment(options.connect, python), nullptr);
  }
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);  // its failures are ours to tell, in one line
  tunnel::EntranceOptions entrance;
  entrance.exit = options.connect;
  entrance.ports = {kClientsPort, kCallbacksPort};
  absl::StatusOr<std::string> authorities = ReadPem(options.authorities);
  if (!authorities.ok()) return Fail(authorities.status());
  entrance.authorities = *std::move(authorities);
  absl::StatusOr<std::unique_ptr<tunnel::Entrance>> opened = tunnel::OpenEntrance(entrance);
  if (!opened.ok()) return Fail(opened.status());
  const std::map<std::string, std::string>& addresses = (*opened)->addresses();
  std::map<std::string, std::string> environment = ClientEnvironment(addresses.at(kClientsPort), python);
  environment["GANGWAY_CALLBACK_ADDRESS"] = addresses.at(kCallbacksPort);
  return RunCommand(options.command, std::move(environment), nullptr);
}

int Run(const RunOptions& options) {
  CatchSignals();
  const absl::StatusOr<std::string> python = FindPythonFolder();
  if (!python.ok()) return Fail(python.status());
  return options.connect.empty() ? RunHere(options, *python) : RunThere(options, *python);
}

}  // namespace

void AddRunCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Run a JAX script on a local cluster: gangway run --devices 8 -- python train.py");
  command->footer(
      "Starts a controller and workers on loopback, sets the environment so that stock JAX finds them, runs the "
      "command,\n"
      "passes on its output and exit code, and takes everything down, also when interrupted.");
  AddLocalClusterOptions(*command, &options->cluster);
  CLI::Option* connect = command->add_option("--connect", options->connect,
                                             "Use the cluster whose clients connect there, host:port; none is started");
  command
      ->add_option("--tls-ca", options->authorities,
                   "The address of --connect is a controller's --listen-tls: PEM file of the authorities that sign its "
                   "certificate")
      ->needs(connect);
  command->add_option("command", options->command, "The command and its arguments, after --")->required();
  command->positionals_at_end();
  command->callback([options, action] { *action = [options] { return Run(*options); }; });
}

}  // namespace gangway::cli
