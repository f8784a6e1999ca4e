#include "gangway/cli/local_cluster.h"

#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"

namespace gangway::cli {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kStartDeadline = absl::Seconds(60);
constexpr absl::Duration kStopGrace = absl::Seconds(5);

fs::path ExecutablePath() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// <environment>/lib/python3.*/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so
std::string PluginIn(const fs::path& environment) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(environment / "lib", error)) {
    if (!absl::StartsWith(entry.path().filename().string(), "python3")) continue;
    fs::path plugin = entry.path() / "site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so";
    if (fs::exists(plugin, error)) return plugin.string();
  }
  return "";
}

// Waits for the controller to have all devices, or for the first of both to fail.
absl::Status AwaitReady(Process& controller, Process& worker) {
  absl::Time deadline = absl::Now() + kStartDeadline;
  while (true) {
    absl::StatusOr<std::string> ready = controller.AwaitAnnouncement(absl::Milliseconds(20));
    if (ready.ok()) return absl::OkStatus();
    if (!absl::IsDeadlineExceeded(ready.status())) return Annotate(ready.status(), "controller");
    // A worker announces nothing but why it failed.
    absl::Status failed = worker.AwaitAnnouncement(absl::Milliseconds(1)).status();
    if (!absl::IsDeadlineExceeded(failed)) return Annotate(failed, "worker");
    if (absl::Now() > deadline) return absl::DeadlineExceededError("the worker's devices did not join in time");
  }
}

}  // namespace

absl::StatusOr<std::string> FindCpuPlugin() {
  if (std::string named = Env("GANGWAY_PLUGIN"); !named.empty()) return named;
  std::vector<fs::path> environments;
  if (std::string active = Env("VIRTUAL_ENV"); !active.empty()) environments.push_back(active);
  for (absl::string_view bin : absl::StrSplit(Env("PATH"), ':')) {
    if (absl::EndsWith(bin, "/bin")) environments.push_back(fs::path(std::string(bin)).parent_path());
  }
  environments.push_back(ExecutablePath().parent_path().parent_path() / ".venv");
  for (const fs::path& environment : environments) {
    if (std::string plugin = PluginIn(environment); !plugin.empty()) return plugin;
  }
  return absl::NotFoundError(
      "no PJRT plugin found: install the wheel xla_cpu_pjrt, or name one with --plugin or GANGWAY_PLUGIN");
}

absl::StatusOr<std::string> FindPythonFolder() {
  fs::path beside = ExecutablePath().parent_path().parent_path();
  std::vector<fs::path> candidates = {beside / "python", beside / "share/gangway/python"};
  if (std::string named = Env("GANGWAY_PYTHON_PATH"); !named.empty()) candidates.insert(candidates.begin(), named);
  std::error_code error;
  for (const fs::path& folder : candidates) {
    if (fs::exists(folder / "jax_plugins/gangway/__init__.py", error)) return folder.string();
  }
  return absl::NotFoundError("the folder with jax_plugins/gangway is not where it belongs; set GANGWAY_PYTHON_PATH");
}

absl::StatusOr<LocalCluster> LocalCluster::Start(const LocalClusterOptions& options) {
  std::string plugin = options.plugin;
  if (plugin.empty()) {
    GW_ASSIGN_OR_RETURN(plugin, FindCpuPlugin());
  }
  ProcessOptions controller_options;
  controller_options.announces = true;
  controller_options.environment["GRPC_VERBOSITY"] = "NONE";  // failures are ours to tell, in one line
  controller_options.own_group = true;
  controller_options.command = {
      ExecutablePath().string(), "controller", absl::StrCat("--listen=127.0.0.1:", options.port),
      absl::StrCat("--expect-devices=", options.devices), absl::StrCat("--log-level=", options.log_level)};
  if (!options.status_file.empty()) {
    controller_options.command.push_back(absl::StrCat("--status-file=", options.status_file));
  }
  if (!options.dump_folder.empty()) {
    controller_options.command.push_back(absl::StrCat("--dump=", options.dump_folder));
  }
  GW_ASSIGN_OR_RETURN(Process controller, Process::Start(controller_options));
  // First it says where workers and clients find it, "WORKERS CLIENTS", then "ready" once all devices have joined.
  GW_ASSIGN_OR_RETURN_WITH(std::string line, controller.AwaitAnnouncement(kStartDeadline), "controller");
  std::vector<std::string> addresses = absl::StrSplit(line, ' ');
  if (addresses.size() != 2) return absl::InternalError(absl::StrCat("controller announced '", line, "'"));

  ProcessOptions worker_options;
  worker_options.announces = true;
  worker_options.environment["GRPC_VERBOSITY"] = "NONE";
  worker_options.environment["TF_CPP_MIN_LOG_LEVEL"] = "2";  // the plugin's chatter
  // XLA allocates the temporaries of every step anew: in huge pages, and in as many heaps as two threads need, a
  // training step of eight devices is 10 % faster and takes 100 MB less.
  if (getenv("GLIBC_TUNABLES") == nullptr) {
    worker_options.environment["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=2";
  }
  worker_options.own_group = true;
  worker_options.command = {ExecutablePath().string(),
                            "worker",
                            absl::StrCat("--controller=", addresses[0]),
                            absl::StrCat("--devices=", options.devices),
                            absl::StrCat("--plugin=", plugin),
                            absl::StrCat("--log-level=", options.log_level)};
  GW_ASSIGN_OR_RETURN(Process worker, Process::Start(worker_options));
  GW_RETURN_IF_ERROR(AwaitReady(controller, worker));
  return LocalCluster(std::move(controller), std::move(worker), addresses[1]);
}

absl::Status LocalCluster::Check() {
  if (auto ending = controller_.Poll(); ending.has_value() && !std::exchange(reported_controller_, true)) {
    return absl::UnavailableError(absl::StrCat("the controller ", ending->ToString()));
  }
  if (auto ending = worker_.Poll(); ending.has_value() && !std::exchange(reported_worker_, true)) {
    return absl::UnavailableError(absl::StrCat("worker 0 ", ending->ToString()));
  }
  return absl::OkStatus();
}

void LocalCluster::Stop() {
  worker_.Stop(kStopGrace);
  controller_.Stop(kStopGrace);
}

}  // namespace gangway::cli
