// gangway worker: the devices of one host, at a controller's service.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gangway/cli/command.h"
#include "gangway/cli/local_cluster.h"
#include "gangway/cli/logging.h"
#include "gangway/cli/process.h"
#include "gangway/cli/signals.h"
#include "gangway/cli/tls_files.h"
#include "gangway/net/grpc/connection_log.h"
#include "gangway/worker/worker_main.h"
#include "spdlog/spdlog.h"

namespace gangway::cli {
namespace {

struct WorkerCommandOptions {
  worker::RunWorkerOptions worker;
  TlsFiles tls;
  double connect_seconds = 30;
  double reconnect_seconds = 300;
  double leave_seconds = 0;
  LogOptions log;
  int announce_fd = -1;
};

int RunWorkerCommand(WorkerCommandOptions options) {
  CatchSignals();
  SetUpLogging(options.worker.name, options.log);
  if (options.worker.plugin.empty()) {
    absl::StatusOr<std::string> plugin = FindCpuPlugin();
    if (!plugin.ok()) {
      AnnounceError(options.announce_fd, plugin.status());
      return kExitFailure;
    }
    options.worker.plugin = *std::move(plugin);
  }
  absl::StatusOr<net::Tls> tls = ReadTls(options.tls);
  if (!tls.ok()) {
    AnnounceError(options.announce_fd, tls.status());
    return kExitFailure;
  }
  options.worker.tls = *std::move(tls);
  std::atomic<bool> stop = false, done = false;
  options.worker.stop = &stop;
  options.worker.connect_timeout = absl::Seconds(options.connect_seconds);
  options.worker.reconnect = absl::Seconds(options.reconnect_seconds);
  options.worker.leave_patience = absl::Seconds(options.leave_seconds);
  options.worker.log = [](const std::string& line) { spdlog::info("{}", line); };
  net::LogFailedHandshakes([](const std::string& line) { spdlog::warn("{}", line); });
  std::thread watcher([&] {
    while (!done && CaughtSignal() == 0) absl::SleepFor(absl::Milliseconds(50));
    stop = true;
  });
  absl::Status status = worker::RunWorker(options.worker);
  done = true;
  watcher.join();
  if (status.ok()) return 0;
  AnnounceError(options.announce_fd, status);
  return kExitFailure;
}

}  // namespace

void AddWorkerCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<WorkerCommandOptions>();
  options->worker.name = "worker0";
  CLI::App* command = app.add_subcommand("worker", "Offer this host's devices to a controller");
  command->add_option("--controller", options->worker.controller, "The controller's address for workers")->required();
  command->add_option("--devices", options->worker.devices, "Devices, where the plugin lets us choose (CPU)")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--plugin", options->worker.plugin,
                      "PJRT plugin (shared library); default: the CPU plugin of the wheel xla_cpu_pjrt");
  command
      ->add_option("--device-memory", options->worker.device_memory,
                   "Memory of each device that clients may use, e.g. 4GiB; default: what the device has")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  command->add_flag("--deterministic", options->worker.deterministic,
                    "Compile programs so that equal inputs give equal bits (CPUs always do)");
  command->add_option("--files", options->worker.files,
                      "Folder in which clients' checkpoints are written and read; default: there are none");
  command->add_option("--cache", options->worker.cache,
                      "Folder in which machine code of programs is kept for later processes; default: it is not");
  command->add_option("--name", options->worker.name, "Unique name in the cluster")->capture_default_str();
  command->add_option("--island", options->worker.island, "Island: devices with a fast network of their own")
      ->capture_default_str();
  command->add_option("--connect-timeout", options->connect_seconds, "Seconds to look for the controller at first")
      ->capture_default_str();
  command
      ->add_option("--reconnect", options->reconnect_seconds,
                   "Seconds to look for a controller that is gone, before giving up; 0: not at all")
      ->capture_default_str();
  command
      ->add_option("--leave", options->leave_seconds,
                   "Seconds, after the signal to end, to finish what runs and to move arrays to other workers")
      ->capture_default_str();
  command
      ->add_option("--rank", options->worker.rank,
                   "Join after the workers of smaller ranks, so that devices are numbered in this order")
      ->capture_default_str();
  AddTlsOptions(*command, &options->tls);
  const std::map<std::string, worker::Peers> peers = {{"sealed", worker::Peers::kSealed},
                                                      {"open", worker::Peers::kOpen}};
  command
      ->add_option(
          "--peers", options->worker.peers,
          "How workers of different hosts exchange data, the same for all: sealed is TLS with the certificates; "
          "open is UCX in the clear (RDMA, TCP), for a network that nobody else is on")
      ->transform(CLI::CheckedTransformer(peers, CLI::ignore_case))
      ->default_str("sealed");
  command->add_option("--listen-peers", options->worker.listen_peers,
                      "Where workers of other hosts reach this one, host:port; port 0: any; default: the address that "
                      "the controller sees, any port");
  AddLogOptions(*command, &options->log);
  command->add_option("--announce-fd", options->announce_fd, "Say on this file descriptor why the worker failed");
  command->callback([options, action] { *action = [options] { return RunWorkerCommand(*options); }; });
}

}  // namespace gangway::cli
