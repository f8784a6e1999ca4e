// gangway controller: compiles, orders and dispatches; serves JAX clients and workers.
#include "gangway/controller/controller.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/cli/check_options.h"
#include "gangway/cli/command.h"
#include "gangway/cli/logging.h"
#include "gangway/cli/process.h"
#include "gangway/cli/program_file.h"
#include "gangway/cli/signals.h"
#include "gangway/cli/status_file.h"
#include "gangway/cli/tenants_file.h"
#include "gangway/cli/tls_files.h"
#include "gangway/controller/controller_server.h"
#include "gangway/hlo/text.h"
#include "gangway/ifrt_proxy/server.h"
#include "gangway/program_api/service.h"
#include "gangway/status/server.h"
#include "spdlog/spdlog.h"

namespace gangway::cli {
namespace {

struct ControllerCommandOptions {
  std::string listen = "127.0.0.1:0";
  std::string listen_workers = "127.0.0.1:0";
  int expect_devices = 1;
  double device_wait_seconds = 60;
  double heartbeat_seconds = 5;
  TlsFiles tls;
  std::string tenants;
  std::string http;  // "": no status page
  std::string status_file;
  std::string dump_folder;
  CheckOptions checks;
  std::string log_level = "info";
  int announce_fd = -1;
};

// Counts are the loop's: asked for there, written here.
void UpdateStatusFile(const std::string& path, controller::Controller& controller) {
  controller::Statistics stats;
  size_t devices = 0;
  absl::Notification asked;
  controller.loop().Post([&] {
    stats = controller.Stats();
    devices = controller.devices().size();
    asked.Notify();
  });
  asked.WaitForNotification();
  WriteStatusFile(path, stats, devices);
}

// Compiles, and keeps in `folder` what came in and what every device runs: NNN.NAME.mlirbc and NNN.NAME.hlo. Programs
// that do not compile leave their artifact too, as NNN.failed.mlirbc.
controller::CompileFunction CompileAndDump(std::string folder) {
  auto count = std::make_shared<std::atomic<int>>(0);  // shared by the copies of the function
  return [folder = std::move(folder), count](const std::string& artifact, const compile::CompileOptions& options) {
    absl::StatusOr<compile::CompiledProgram> program = controller::CompileArtifact(artifact, options);
    std::string stem = absl::StrFormat("%s/%03d.%s", folder, (*count)++, program.ok() ? program->name : "failed");
    absl::Status written = WriteFile(stem + ".mlirbc", artifact);
    if (program.ok()) written.Update(WriteFile(stem + ".hlo", hlo::PrintModule(*program->per_device)));
    if (!written.ok()) spdlog::warn("{}", std::string(written.message()));
    return program;
  };
}

absl::Status ServeClients(const ControllerCommandOptions& options) {
  controller::ControllerServerOptions server_options;
  server_options.worker_address = options.listen_workers;
  GW_ASSIGN_OR_RETURN(server_options.worker_tls, ReadTls(options.tls));
  if (server_options.worker_tls.empty() && !IsLoopback(options.listen_workers)) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers from other machines need certificates: --listen-workers=", options.listen_workers,
                     " goes with --tls-ca, --tls-cert and --tls-key"));
  }
  server_options.controller.compile = controller::CompileArtifact;
  server_options.controller.heartbeat = absl::Seconds(options.heartbeat_seconds);
  server_options.controller.scheduler.horizon = absl::Milliseconds(20);
  GW_ASSIGN_OR_RETURN(server_options.controller.tenants, ReadTenants(options.tenants));
  if (options.tenants.empty() && !IsLoopback(options.listen)) {
    return absl::InvalidArgumentError(
        absl::StrCat("clients from other machines need tokens: --listen=", options.listen, " goes with --tenants"));
  }
  if (!options.dump_folder.empty()) server_options.controller.compile = CompileAndDump(options.dump_folder);
  GW_ASSIGN_OR_RETURN(server_options.controller.inspect, MakeInspectOptions(options.checks));
  server_options.controller.log = [](const std::string& line) { spdlog::info("{}", line); };
  GW_ASSIGN_OR_RETURN(auto server, controller::StartControllerServer(std::move(server_options)));
  SystemClock clock;
  ifrt_proxy::ServerOptions proxy_options;
  proxy_options.address = options.listen;
  std::shared_ptr<grpc::Service> programs = program_api::MakeService(server->controller());
  proxy_options.more_services = {programs.get()};
  GW_ASSIGN_OR_RETURN(auto proxy, ifrt_proxy::StartServer(server->controller(), clock, proxy_options));
  std::unique_ptr<status::Server> page;
  if (!options.http.empty()) {
    GW_ASSIGN_OR_RETURN(page, status::Serve(server->controller(), options.http));
    spdlog::info("status page: http://{}/", page->address());
  }
  std::string host = options.listen.substr(0, options.listen.rfind(':'));
  std::string clients = absl::StrCat(host, ":", proxy->port());
  spdlog::info("clients: {}, workers: {}", clients, server->worker_address());
  Announce(options.announce_fd,
           absl::StrCat(server->worker_address(), " ", clients, " ", page == nullptr ? "-" : page->address()));
  GW_RETURN_IF_ERROR(
      server->WaitForDevices(options.expect_devices, absl::Now() + absl::Seconds(options.device_wait_seconds)));
  Announce(options.announce_fd, "ready");
  while (CaughtSignal() == 0) {
    absl::SleepFor(absl::Milliseconds(100));
    if (!options.status_file.empty()) UpdateStatusFile(options.status_file, server->controller());
  }
  return absl::OkStatus();
}

int RunController(const ControllerCommandOptions& options) {
  CatchSignals();
  SetUpLogging("controller", options.log_level);
  absl::Status status = ServeClients(options);
  if (status.ok()) return 0;
  AnnounceError(options.announce_fd, "controller", status);
  return kExitFailure;
}

}  // namespace

void AddControllerCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<ControllerCommandOptions>();
  CLI::App* command = app.add_subcommand("controller", "Serve JAX clients over workers that connect");
  command->add_option("--listen", options->listen, "Address for clients, host:port; port 0 picks a free one")
      ->capture_default_str();
  command->add_option("--listen-workers", options->listen_workers, "Address for workers, host:port or unix:/path")
      ->capture_default_str();
  command->add_option("--expect-devices", options->expect_devices, "Devices that must join, or the controller gives up")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--device-wait", options->device_wait_seconds, "Seconds to wait for them")->capture_default_str();
  command
      ->add_option("--heartbeat", options->heartbeat_seconds,
                   "Seconds between signs of life of a worker; one silent for twice as long is lost")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  AddTlsOptions(*command, &options->tls);
  command->add_option("--tenants", options->tenants,
                      "JSON file of those who may use the cluster: name, token, weight, max_priority, max_sessions");
  command->add_option("--http", options->http,
                      "Address of the status page, metrics and traces, 127.0.0.1:PORT; default: none");
  command->add_option("--status-file", options->status_file,
                      "Write live counts (sessions, arrays, bytes) to this JSON file");
  command->add_option("--dump", options->dump_folder, "Folder for every program's artifact and per-device HLO")
      ->check(CLI::ExistingDirectory);
  AddCheckOptions(*command, &options->checks);
  command->add_option("--log-level", options->log_level, "trace, debug, info, warn or error")->capture_default_str();
  command->add_option(
      "--announce-fd", options->announce_fd,
      "Say the addresses (workers, clients, status page), then that all is ready, on this file descriptor");
  command->callback([options, action] { *action = [options] { return RunController(*options); }; });
}

}  // namespace gangway::cli
