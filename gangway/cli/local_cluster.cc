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

// The folders of Python packages of an environment: <environment>/lib/python3.*/site-packages.
std::vector<fs::path> PackageFolders(const fs::path& environment) {
  std::error_code error;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(environment / "lib", error)) {
    if (absl::StartsWith(entry.path().filename().string(), "python3"))
      folders.push_back(entry.path() / "site-packages");
  }
  return folders;
}

// Waits for the controller to have so many devices, or for the first process to fail. A controller announces each count
// of devices that joins.
absl::Status AwaitReady(Process& controller, std::vector<Process>& workers) {
  absl::Time deadline = absl::Now() + kStartDeadline;
  while (true) {
    absl::StatusOr<std::string> ready = controller.AwaitAnnouncement(absl::Milliseconds(20));
    if (ready.ok()) return absl::OkStatus();
    if (!absl::IsDeadlineExceeded(ready.status())) return Annotate(ready.status(), "controller");
    for (size_t i = 0; i < workers.size(); ++i) {
      // A worker announces nothing but why it failed.
      absl::Status failed = workers[i].AwaitAnnouncement(absl::Milliseconds(1)).status();
      if (!absl::IsDeadlineExceeded(failed)) {
        return Annotate(failed, workers.size() == 1 ? "worker" : absl::StrCat("worker ", i));
      }
    }
    if (absl::Now() > deadline) return absl::DeadlineExceededError("the workers' devices did not join in time");
  }
}

// Devices of worker `index`: as equal as they get.
int DevicesOf(const LocalClusterOptions& options, int index) {
  return options.devices / options.workers + (index < options.devices % options.workers ? 1 : 0);
}

absl::StatusOr<Process> StartWorker(const LocalClusterOptions& options, const std::string& controller,
                                    const std::string& plugin, int index) {
  ProcessOptions process;
  process.announces = true;
  process.environment["TF_CPP_MIN_LOG_LEVEL"] = "2";  // the plugin's chatter
  process.environment["UCX_HANDLE_ERRORS"] = "none";  // crashes are ours to report
  process.environment["UCX_LOG_LEVEL"] = "fatal";     // and so is what happens to peers
  // XLA allocates the temporaries of every step anew: in huge pages, and in as many heaps as two threads need, a
  // training step of eight devices is 10 % faster and takes 100 MB less.
  if (getenv("GLIBC_TUNABLES") == nullptr) {
    process.environment["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=2";
  }
  process.own_group = true;
  process.command = {ExecutablePath().string(),
                     "worker",
                     absl::StrCat("--controller=", controller),
                     absl::StrCat("--name=worker", index),
                     absl::StrCat("--rank=", index),
                     "--reconnect=0",  // its controller does not come back
                     absl::StrCat("--devices=", DevicesOf(options, index)),
                     absl::StrCat("--plugin=", plugin),
                     absl::StrCat("--log-level=", options.log.level),
                     absl::StrCat("--log-format=", options.log.format)};
  if (options.device_memory > 0) {
    process.command.push_back(absl::StrCat("--device-memory=", options.device_memory));
  }
  if (options.deterministic) process.command.push_back("--deterministic");
  if (!options.cache.empty()) process.command.push_back(absl::StrCat("--cache=", options.cache));
  if (!options.files.empty()) process.command.push_back(absl::StrCat("--files=", options.files));
  return Process::Start(process);
}

}  // namespace

absl::StatusOr<std::string> FindCpuPlugin() {
  if (std::string named = Env("GANGWAY_PLUGIN"); !named.empty()) return named;
  const fs::path beside = ExecutablePath().parent_path().parent_path();
  std::vector<fs::path> environments, folders = {beside};  // of a wheel
  if (std::string active = Env("VIRTUAL_ENV"); !active.empty()) environments.push_back(active);
  for (absl::string_view bin : absl::StrSplit(Env("PATH"), ':')) {
    if (absl::EndsWith(bin, "/bin")) environments.push_back(fs::path(std::string(bin)).parent_path());
  }
  environments.push_back(beside / ".venv");
  for (const fs::path& environment : environments) {
    for (fs::path& folder : PackageFolders(environment)) folders.push_back(std::move(folder));
  }
  std::error_code error;
  for (const fs::path& folder : folders) {
    const fs::path plugin = folder / "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so";
    if (fs::exists(plugin, error)) return plugin.string();
  }
  return absl::NotFoundError(
      "no PJRT plugin found: install the wheel xla_cpu_pjrt, or name one with --plugin or GANGWAY_PLUGIN");
}

absl::StatusOr<std::string> FindPythonFolder() {
  fs::path beside = ExecutablePath().parent_path().parent_path();
  // A checkout, an installation, a wheel.
  std::vector<fs::path> candidates = {beside / "python", beside / "share/gangway/python", beside};
  if (std::string named = Env("GANGWAY_PYTHON_PATH"); !named.empty()) candidates.insert(candidates.begin(), named);
  std::error_code error;
  for (const fs::path& folder : candidates) {
    if (fs::exists(folder / "jax_plugins/gangway/__init__.py", error)) return folder.string();
  }
  return absl::NotFoundError("the folder with jax_plugins/gangway is not where it belongs; set GANGWAY_PYTHON_PATH");
}

absl::StatusOr<LocalCluster> LocalCluster::Start(const LocalClusterOptions& options) {
  if (options.workers > options.devices) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.workers, " workers for ", options.devices, " devices: each needs one"));
  }
  std::string plugin = options.plugin;
  if (plugin.empty()) {
    GW_ASSIGN_OR_RETURN(plugin, FindCpuPlugin());
  }
  ProcessOptions controller_options;
  controller_options.announces = true;
  controller_options.own_group = true;
  controller_options.command = {ExecutablePath().string(),
                                "controller",
                                absl::StrCat("--listen=127.0.0.1:", options.port),
                                absl::StrCat("--expect-devices=", options.devices),
                                absl::StrCat("--log-level=", options.log.level),
                                absl::StrCat("--log-format=", options.log.format)};
  controller_options.command.push_back(absl::StrCat("--history=", options.history));
  if (!options.status_file.empty()) {
    controller_options.command.push_back(absl::StrCat("--status-file=", options.status_file));
  }
  if (!options.dump_folder.empty()) {
    controller_options.command.push_back(absl::StrCat("--dump=", options.dump_folder));
  }
  if (!options.tenants.empty()) controller_options.command.push_back(absl::StrCat("--tenants=", options.tenants));
  if (options.http_port >= 0) {
    controller_options.command.push_back(absl::StrCat("--http=127.0.0.1:", options.http_port));
  }
  for (std::string& check : options.checks.Arguments()) controller_options.command.push_back(std::move(check));
  GW_ASSIGN_OR_RETURN(Process controller, Process::Start(controller_options));
  // First it says where it is found, "WORKERS CLIENTS STATUS TUNNEL", then "ready" once all devices have joined.
  GW_ASSIGN_OR_RETURN_WITH(std::string line, controller.AwaitAnnouncement(kStartDeadline), "controller");
  std::vector<std::string> addresses = absl::StrSplit(line, ' ');
  if (addresses.size() != 4) return absl::InternalError(absl::StrCat("controller announced '", line, "'"));

  std::vector<Process> workers;
  for (int i = 0; i < options.workers; ++i) {
    GW_ASSIGN_OR_RETURN(Process worker, StartWorker(options, addresses[0], plugin, i));
    workers.push_back(std::move(worker));
  }
  GW_RETURN_IF_ERROR(AwaitReady(controller, workers));
  return LocalCluster(std::move(controller), std::move(workers), addresses[1], addresses[2] == "-" ? "" : addresses[2]);
}

absl::Status LocalCluster::Check() {
  if (auto ending = controller_.Poll(); ending.has_value() && !std::exchange(reported_controller_, true)) {
    return absl::UnavailableError(absl::StrCat("the controller ", ending->ToString()));
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    auto ending = workers_[i].Poll();
    if (!ending.has_value() || reported_workers_[i]) continue;
    reported_workers_[i] = true;
    return absl::UnavailableError(absl::StrCat("worker ", i, " ", ending->ToString()));
  }
  return absl::OkStatus();
}

void LocalCluster::Stop() {
  for (Process& worker : workers_) worker.Stop(kStopGrace);
  controller_.Stop(kStopGrace);
}

}  // namespace gangway::cli
