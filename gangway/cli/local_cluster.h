// A controller and workers on this machine, as child processes on loopback: what `run` and `serve` stand on.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/cli/check_options.h"
#include "gangway/cli/logging.h"
#include "gangway/cli/process.h"
#include "gangway/controller/runtime_controller.h"

namespace CLI {
class App;
}

namespace gangway::cli {

struct LocalClusterOptions {
  int devices = 8;  // of all workers together
  int workers = 1;
  int port = 0;                                                       // for clients; 0: any free one
  int http_port = -1;                                                 // of the status page; 0: any free one, -1: none
  size_t history = controller::ControllerOptions().journal_capacity;  // launches remembered
  std::string plugin;                                                 // PJRT plugin; "" finds the CPU plugin
  std::string status_file;                                            // "" for none
  std::string dump_folder;                                            // "" for none
  CheckOptions checks;
  int64_t device_memory = 0;  // bytes of each; 0: what it has
  bool deterministic = false;
  std::string files;    // folder for clients' checkpoints; "": none
  std::string cache;    // folder for programs' machine code; "": none
  std::string tenants;  // file of those who may use it; "": everyone
  LogOptions log{.level = "warn"};
};

// The options `run` and `serve` share.
void AddLocalClusterOptions(CLI::App& command, LocalClusterOptions* options);

// The processes die with this object and with this process. Used from one thread.
class LocalCluster {
 public:
  // Returns once clients can be served; says which process failed and why otherwise.
  static absl::StatusOr<LocalCluster> Start(const LocalClusterOptions& options);

  const std::string& address() const { return address_; }            // host:port for clients
  const std::string& http_address() const { return http_address_; }  // host:port of the status page; "": none
  // OK while all live; otherwise which one ended and how (once per process).
  absl::Status Check();
  bool controller_alive() { return controller_.running(); }
  void Stop();

 private:
  LocalCluster(Process controller, std::vector<Process> workers, std::string address, std::string http_address)
      : controller_(std::move(controller)),
        workers_(std::move(workers)),
        address_(std::move(address)),
        http_address_(std::move(http_address)),
        reported_workers_(workers_.size()) {}

  Process controller_;
  std::vector<Process> workers_;
  std::string address_;
  std::string http_address_;
  bool reported_controller_ = false;
  std::vector<bool> reported_workers_;
};

// The CPU plugin's shared library: GANGWAY_PLUGIN, the active virtual environment, the one beside this executable's
// build folder.
absl::StatusOr<std::string> FindCpuPlugin();
// The folder that holds jax_plugins/gangway, to be put on PYTHONPATH.
absl::StatusOr<std::string> FindPythonFolder();

}  // namespace gangway::cli
