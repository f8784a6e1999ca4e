// Worker processes of a served cluster, for tests that kill, stop or end them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/runtime/served_cluster.h"

namespace gangway {

// -1 when it does not start.
pid_t Spawn(std::vector<std::string> words);
// At once, and waits for its end. Nothing for what never started.
void Kill(pid_t process);

// Named w0, w1, ... in the order of their devices. They end with it.
class WorkerProcesses {
 public:
  // `arguments` go to every worker beside those that say who and where it is.
  WorkerProcesses(const ServedCluster& cluster, int workers, int devices_of_each,
                  std::vector<std::string> arguments = {});
  ~WorkerProcesses();

  pid_t operator[](int worker) const { return ids_[worker]; }
  void Kill(int worker);
  // Again, once it has ended.
  void Start(int worker);
  // How the process ended, as waitpid tells it.
  int WaitForEnd(int worker);

 private:
  const ServedCluster& cluster_;
  const int devices_;
  const std::vector<std::string> arguments_;
  std::vector<pid_t> ids_;
};

}  // namespace gangway
