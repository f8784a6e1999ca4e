// gangway controller: compiles, orders and dispatches; serves JAX clients and workers.
#include "gangway/controller/controller.h"

#include <algorithm>
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
#include "gangway/cli/explanation.h"
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
#include "gangway/net/address.h"
#include "gangway/net/grpc/connection_log.h"
#include "gangway/net/tls.h"
#include "gangway/program_api/service.h"
#include "gangway/status/server.h"
#include "gangway/tunnel/exit.h"
#include "spdlog/spdlog.h"

namespace gangway::cli {
namespace {

struct ControllerCommandOptions {
  std::string listen = "127.0.0.1:0";
  std::string listen_tls;  // "": no tunnel
  std::string listen_workers = "127.0.0.1:0";
  int expect_devices = 1;
  double device_wait_seconds = 60;
  double heartbeat_seconds = 5;
  TlsFiles tls;
  std::string tenants;
  int64_t max_message = ifrt_proxy::ServerOptions().max_message_bytes;
  int64_t max_program = controller::ControllerOptions().max_program_bytes;
  std::string http;  // "": no status page
  size_t history = controller::ControllerOptions().journal_capacity;
  std::string status_file;
  std::string dump_folder;
  CheckOptions checks;
  LogOptions log;
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

// Clients of other machines come in by it; where it leads is open on this machine only.
absl::StatusOr<std::unique_ptr<tunnel::Exit>> OpenTunnel(const ControllerCommandOptions& options,
                                                         const ifrt_proxy::Server& proxy) {
  tunnel::ExitOptions exit;
  exit.address = options.listen_tls;
  GW_ASSIGN_OR_RETURN(exit.tls, ReadTls(options.tls));
  if (exit.tls.empty()) {
    return absl::InvalidArgumentError("--listen-tls goes with --tls-ca, --tls-cert and --tls-key");
  }
  exit.ports = {{kClientsPort, net::WithPort(options.listen, proxy.port())},
                {kCallbacksPort, net::WithPort(options.listen, proxy.callback_port())}};
  return tunnel::OpenExit(std::move(exit));
}

// Until all have joined, or a signal says that they need not.
absl::Status AwaitDevices(controller::ControllerServer& server, int count, absl::Time deadline) {
  while (CaughtSignal() == 0) {
    const absl::Time look_up = std::min(deadline, absl::Now() + absl::Seconds(1));
    const absl::Status joined = server.WaitForDevices(count, look_up);
    if (!absl::IsDeadlineExceeded(joined) || absl::Now() >= deadline) return joined;
  }
  return absl::OkStatus();
}

// Whoever comes from another machine says who he is.
absl::Status CheckAddresses(const ControllerCommandOptions& options, const net::Tls& worker_tls) {
  if (worker_tls.empty() && !net::IsLoopback(options.listen_workers)) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers from other machines need certificates: --listen-workers=", options.listen_workers,
                     " goes with --tls-ca, --tls-cert and --tls-key"));
  }
  for (const auto& [option, address] : {std::pair("listen", options.listen), {"listen-tls", options.listen_tls}}) {
    if (address.empty() || net::IsLoopback(address)) continue;
    GW_RETURN_IF_ERROR_WITH(net::ParseAddress(address).status(), absl::StrCat("--", option));
    if (!options.tenants.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("clients from other machines need tokens: --", option, "=", address, " goes with --tenants"));
  }
  return absl::OkStatus();
}

absl::StatusOr<controller::ControllerServerOptions> ServerOptions(const ControllerCommandOptions& options) {
  controller::ControllerServerOptions server;
  server.worker_address = options.listen_workers;
  GW_ASSIGN_OR_RETURN(server.worker_tls, ReadTls(options.tls));
  GW_RETURN_IF_ERROR(CheckAddresses(options, server.worker_tls));
  server.controller.compile =
      options.dump_folder.empty() ? controller::CompileArtifact : CompileAndDump(options.dump_folder);
  server.controller.journal_capacity = options.history;
  server.controller.max_program_bytes = options.max_program;
  server.controller.heartbeat = absl::Seconds(options.heartbeat_seconds);
  server.controller.scheduler.horizon = absl::Milliseconds(20);
  GW_ASSIGN_OR_RETURN(server.controller.tenants, ReadTenants(options.tenants));
  GW_ASSIGN_OR_RETURN(server.controller.inspect, MakeInspectOptions(options.checks));
  server.controller.log = [](const std::string& line) { spdlog::info("{}", line); };
  return server;
}

absl::Status ServeClients(const ControllerCommandOptions& options) {
  GW_ASSIGN_OR_RETURN(controller::ControllerServerOptions server_options, ServerOptions(options));
  GW_ASSIGN_OR_RETURN(auto server, controller::StartControllerServer(std::move(server_options)));
  SystemClock clock;
  ifrt_proxy::ServerOptions proxy_options;
  proxy_options.address = options.listen;
  proxy_options.max_message_bytes = options.max_message;
  std::shared_ptr<grpc::Service> programs = program_api::MakeService(server->controller());
  proxy_options.more_services = {programs.get()};
  GW_ASSIGN_OR_RETURN(auto proxy, ifrt_proxy::StartServer(server->controller(), clock, proxy_options));
  std::unique_ptr<tunnel::Exit> tunnel;
  if (!options.listen_tls.empty()) {
    GW_ASSIGN_OR_RETURN(tunnel, OpenTunnel(options, *proxy));
    spdlog::info("clients over TLS: {}", tunnel->address());
  }
  std::unique_ptr<status::Server> page;
  if (!options.http.empty()) {
    GW_ASSIGN_OR_RETURN(page, status::Serve(server->controller(), options.http, ExplainLive));
    spdlog::info("status page: http://{}/", page->address());
  }
  const std::string clients = net::WithPort(options.listen, proxy->port());
  spdlog::info("clients: {}, workers: {}", clients, server->worker_address());
  Announce(options.announce_fd,
           absl::StrCat(server->worker_address(), " ", clients, " ", page == nullptr ? "-" : page->address(), " ",
                        tunnel == nullptr ? "-" : tunnel->address()));
  GW_RETURN_IF_ERROR(
      AwaitDevices(*server, options.expect_devices, absl::Now() + absl::Seconds(options.device_wait_seconds)));
  if (CaughtSignal() == 0) Announce(options.announce_fd, "ready");
  while (CaughtSignal() == 0) {
    absl::SleepFor(absl::Milliseconds(100));
    if (!options.status_file.empty()) UpdateStatusFile(options.status_file, server->controller());
  }
  return absl::OkStatus();
}

int RunController(const ControllerCommandOptions& options) {
  CatchSignals();
  SetUpLogging("controller", options.log);
  net::LogFailedHandshakes([](const std::string& line) { spdlog::warn("{}", line); });
  absl::Status status = ServeClients(options);
  if (status.ok()) return 0;
  AnnounceError(options.announce_fd, status);
  return kExitFailure;
}

}  // namespace

void AddControllerCommand(CLI::App& app, Action* action) {
  auto options = std::make_shared<ControllerCommandOptions>();
  CLI::App* command = app.add_subcommand("controller", "Serve JAX clients over workers that connect");
  command->add_option("--listen", options->listen, "Address for clients, host:port; port 0 picks a free one")
      ->capture_default_str();
  command->add_option("--listen-tls", options->listen_tls,
                      "Address for clients of other machines, who come by gangway run --connect; default: none");
  command->add_option("--max-message", options->max_message, "Largest message of a client, e.g. 512MiB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
  command->add_option("--max-program", options->max_program, "Largest program that is compiled, e.g. 256MiB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
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
                      "JSON file of those who may use the cluster: name, token, share and quotas");
  command->add_option("--http", options->http,
                      "Address of the status page, metrics and traces, 127.0.0.1:PORT; default: none");
  command->add_option("--history", options->history, "Launches remembered for the status page and traces")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command->add_option("--status-file", options->status_file,
                      "Write live counts (sessions, arrays, bytes) to this JSON file");
  command->add_option("--dump", options->dump_folder, "Folder for every program's artifact and per-device HLO")
      ->check(CLI::ExistingDirectory);
  AddCheckOptions(*command, &options->checks);
  AddLogOptions(*command, &options->log);
  command->add_option(
      "--announce-fd", options->announce_fd,
      "Say the addresses (workers, clients, status page, tunnel), then that all is ready, on this file descriptor");
  command->callback([options, action] { *action = [options] { return RunController(*options); }; });
}

}  // namespace gangway::cli
