#include "CLI/CLI.hpp"
#include "gangway/cli/local_cluster.h"

namespace gangway::cli {

void AddLocalClusterOptions(CLI::App& command, LocalClusterOptions* options) {
  command.add_option("--devices", options->devices, "Devices, of all workers together")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--workers", options->workers, "Worker processes the devices are spread over")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--port", options->port, "Port for clients; 0 picks a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command.add_option("--http-port", options->http_port, "Port of the status page; 0 picks a free one, -1: no page")
      ->check(CLI::Range(-1, 65535))
      ->capture_default_str();
  command.add_option("--history", options->history, "Launches remembered for the status page and traces")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  command.add_option("--plugin", options->plugin,
                     "PJRT plugin (shared library); default: the CPU plugin of the wheel xla_cpu_pjrt");
  command
      .add_option("--device-memory", options->device_memory,
                  "Memory of each device that clients may use, e.g. 4GiB; default: what the device has")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  command.add_option("--status-file", options->status_file,
                     "Write live counts (sessions, arrays, bytes) to this JSON file");
  command.add_option("--dump", options->dump_folder, "Folder for every program's artifact and per-device HLO")
      ->check(CLI::ExistingDirectory);
  command.add_flag("--deterministic", options->deterministic,
                   "Equal runs give equal bits on the same mesh; on CPUs they do in any case");
  command.add_option("--files", options->files,
                     "Folder in which clients' checkpoints are written and read; default: there are none");
  command.add_option("--cache", options->cache,
                     "Folder in which machine code of programs is kept for later runs; default: it is not");
  AddCheckOptions(command, &options->checks);
  command.add_option("--tenants", options->tenants, "JSON file of those who may use the cluster, and their shares");
  AddLogOptions(command, &options->log);
}

}  // namespace gangway::cli
