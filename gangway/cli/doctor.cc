// gangway doctor: whether this host can run a worker or a controller, and what to mend.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/cli/command.h"
#include "gangway/cli/local_cluster.h"
#include "gangway/device/device.h"
#include "gangway/device/pjrt/client.h"
#include "gangway/net/message.h"
#include "gangway/net/ucx/ucx_fabric.h"

namespace gangway::cli {
namespace {

// OK with what was found, or an error that says what to do. Warnings are UNKNOWN: it works, but not at its best.
using Finding = absl::StatusOr<std::string>;

struct Check {
  const char* name;
  std::function<Finding()> look;
};

absl::Status Warning(absl::string_view text) { return absl::UnknownError(text); }

Finding Plugin(const std::string& named) {
  std::string path = named;
  if (path.empty()) {
    GW_ASSIGN_OR_RETURN(path, FindCpuPlugin());
  }
  device::PjrtOptions options;
  options.plugin_path = path;
  GW_ASSIGN_OR_RETURN(std::unique_ptr<device::Client> client, device::MakePjrtClient(options));
  return absl::StrCat(client->devices().size(), " ", client->platform(), " devices by ", path);
}

Finding PythonFolder() {
  GW_ASSIGN_OR_RETURN(std::string folder, FindPythonFolder());
  return absl::StrCat("JAX finds us in ", folder);
}

// The first line that a command of the shell prints; "" if it fails.
std::string LineOf(const char* command) {
  char line[256] = "";
  FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return "";
  const bool printed = std::fgets(line, sizeof line, pipe) != nullptr;
  return pclose(pipe) == 0 && printed ? std::string(absl::StripTrailingAsciiWhitespace(line)) : "";
}

// Controller and workers of one protocol talk to each other; clients bring their own JAX.
Finding Versions() {
  const std::string ours = absl::StrCat("gangway " GANGWAY_VERSION ", protocol ", net::kProtocolVersion);
  const std::string jax = LineOf("python3 -c \"import importlib.metadata as m; print(m.version('jax'))\" 2> /dev/null");
  if (jax.empty()) return Warning(absl::StrCat(ours, "; python3 has no JAX, which clients need: pip install jax"));
  return absl::StrCat(ours, "; python3 has JAX ", jax);
}

Finding Loopback() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound = listener >= 0 && bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  const bool listens = bound && listen(listener, 1) == 0;
  if (listener >= 0) close(listener);
  if (!listens) return absl::UnavailableError("cannot listen on 127.0.0.1: is the interface lo up?");
  return std::string("127.0.0.1 can be listened on");
}

Finding Fabric() {
  GW_ASSIGN_OR_RETURN(std::shared_ptr<net::Fabric> fabric, net::MakeUcxFabric(net::UcxReach::kHost));
  return std::string("UCX starts; ucx_info -d lists the transports that workers with --peers=open have");
}

Finding OpenFiles() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kEnough = 4096;
  if (limit.rlim_cur < kEnough) {
    return Warning(absl::StrCat(limit.rlim_cur, " open files; a controller of many clients wants ulimit -n ", kEnough));
  }
  return absl::StrCat(limit.rlim_cur, " open files");
}

Finding SharedMemory() {
  struct statvfs space = {};
  if (statvfs("/dev/shm", &space) != 0)
    return absl::UnavailableError("no /dev/shm: workers of one host share nothing; mount a tmpfs there");
  if (access("/dev/shm", W_OK) != 0) {
    return absl::PermissionDeniedError("/dev/shm is not for this user, and UCX needs it: chmod 1777 /dev/shm");
  }
  const uint64_t bytes = static_cast<uint64_t>(space.f_bavail) * space.f_frsize;
  constexpr uint64_t kEnough = uint64_t{256} << 20;
  if (bytes < kEnough) {
    return Warning(absl::StrCat("/dev/shm has ", bytes >> 20, " MiB free: UCX wants some 256 (docker run --shm-size)"));
  }
  return absl::StrCat("/dev/shm has ", bytes >> 20, " MiB free");
}

Finding Clock() {
  timex state = {};
  if (adjtimex(&state) == TIME_ERROR) {
    return Warning("the clock is not synchronized: certificates and traces of several hosts want chrony or ntp");
  }
  return std::string("synchronized");
}

int Diagnose(const std::string& plugin) {
  const std::vector<Check> checks = {{"plugin", [&] { return Plugin(plugin); }},
                                     {"python", PythonFolder},
                                     {"versions", Versions},
                                     {"loopback", Loopback},
                                     {"fabric", Fabric},
                                     {"open files", OpenFiles},
                                     {"shared memory", SharedMemory},
                                     {"clock", Clock}};
  int code = 0;
  for (const Check& check : checks) {
    const Finding found = check.look();
    const bool warning = absl::IsUnknown(found.status());
    if (!found.ok() && !warning) code = kExitFailure;
    std::printf("%-4s  %-14s %s\n",
                found.ok() ? "ok"
                : warning  ? "warn"
                           : "FAIL",
                check.name, found.ok() ? found->c_str() : std::string(found.status().message()).c_str());
  }
  return code;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Action* action) {
  auto plugin = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("doctor", "Check whether this host can run Gangway, and say what to mend");
  command->add_option("--plugin", *plugin, "PJRT plugin (shared library); default: the CPU plugin");
  command->callback([plugin, action] { *action = [plugin] { return Diagnose(*plugin); }; });
}

}  // namespace gangway::cli
