#include "tests/runtime/worker_processes.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <utility>

#include "absl/strings/str_cat.h"

extern char** environ;

namespace gangway {

pid_t Spawn(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = -1;
  return posix_spawn(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0 ? child : -1;
}

void Kill(pid_t process) {
  if (process <= 0) return;
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

WorkerProcesses::WorkerProcesses(const ServedCluster& cluster, int workers, int devices_of_each,
                                 std::vector<std::string> arguments)
    : cluster_(cluster), devices_(devices_of_each), arguments_(std::move(arguments)), ids_(workers, -1) {
  for (int w = 0; w < workers; ++w) Start(w);
}

WorkerProcesses::~WorkerProcesses() {
  for (pid_t id : ids_) gangway::Kill(id);
}

void WorkerProcesses::Kill(int worker) { gangway::Kill(std::exchange(ids_[worker], -1)); }

void WorkerProcesses::Start(int worker) {
  std::vector<std::string> words = {GANGWAY_BINARY, "worker",
                                    "--controller", cluster_.worker_address(),
                                    "--name",       absl::StrCat("w", worker),
                                    "--rank",       absl::StrCat(worker),
                                    "--devices",    absl::StrCat(devices_),
                                    "--plugin",     GANGWAY_CPU_PLUGIN,
                                    "--log-level",  "error"};
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  ids_[worker] = Spawn(std::move(words));
}

int WorkerProcesses::WaitForEnd(int worker) {
  int status = -1;
  waitpid(std::exchange(ids_[worker], -1), &status, 0);
  return status;
}

}  // namespace gangway
