// Child processes that never outlive this one.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gangway::cli {

struct ProcessOptions {
  std::vector<std::string> command;                // looked up in PATH
  std::map<std::string, std::string> environment;  // added to or replacing ours
  bool announces = false;  // gets `--announce-fd=N`, a pipe on which it says one line when it is ready
  bool own_group = false;  // a process group of its own, so that Ctrl-C in the terminal does not reach it directly
};

// How a process ended, as a shell tells it: its exit code, or 128 plus the signal.
struct Ending {
  int code = 0;
  int signal = 0;                // 0: exited
  std::string ToString() const;  // "exited with code 3" or "was killed by signal 9"
};

// One child, killed by the kernel when we die (PR_SET_PDEATHSIG). Move-only; destruction kills and reaps it. Used from
// one thread.
class Process {
 public:
  static absl::StatusOr<Process> Start(const ProcessOptions& options);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0 && !ending_.has_value(); }
  // The next line the child announced; DEADLINE_EXCEEDED when it stays silent, ABORTED when it ended first. A line
  // "error: WHY" is returned as the error it tells.
  absl::StatusOr<std::string> AwaitAnnouncement(absl::Duration timeout);
  // Reaps if it has ended.
  std::optional<Ending> Poll();
  std::optional<Ending> Wait(absl::Duration timeout);
  void Signal(int signal);  // to the group when it has one of its own
  // SIGTERM, a grace period, SIGKILL; reaps.
  void Stop(absl::Duration grace);

 private:
  Process() = default;
  pid_t pid_ = -1;
  bool own_group_ = false;
  int announce_fd_ = -1;
  std::optional<Ending> ending_;
};

// Says the line on the pipe given by --announce-fd; nothing when fd is negative.
void Announce(int fd, const std::string& line);

}  // namespace gangway::cli
