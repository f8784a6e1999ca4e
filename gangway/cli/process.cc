#include "gangway/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace gangway::cli {
namespace {

Ending EndingOf(int status) {
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

// In the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void Exec(const ProcessOptions& options, const std::vector<char*>& argv, const std::vector<char*>& envp,
                       pid_t parent, int error_fd) {
  if (options.own_group) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(argv[0], argv.data(), envp.data());
  int error = errno;
  (void)!write(error_fd, &error, sizeof(error));
  _exit(127);
}

std::vector<std::string> MergedEnvironment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    absl::string_view text(*entry);
    if (!added.contains(std::string(text.substr(0, text.find('='))))) merged.emplace_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(absl::StrCat(name, "=", value));
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string Ending::ToString() const {
  return signal != 0 ? absl::StrCat("was killed by signal ", signal) : absl::StrCat("exited with code ", code);
}

absl::StatusOr<Process> Process::Start(const ProcessOptions& options) {
  int announce[2] = {-1, -1}, error[2];
  if ((options.announces && pipe(announce) != 0) || pipe2(error, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  if (options.announces) fcntl(announce[0], F_SETFD, FD_CLOEXEC);
  std::vector<std::string> arguments = options.command;
  if (options.announces) arguments.push_back(absl::StrCat("--announce-fd=", announce[1]));
  std::vector<std::string> environment = MergedEnvironment(options.environment);
  std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) Exec(options, argv, envp, parent, error[1]);
  close(error[1]);
  if (options.announces) close(announce[1]);
  int failure = pid < 0 ? errno : 0;
  if (pid > 0 && read(error[0], &failure, sizeof(failure)) != sizeof(failure)) failure = 0;
  close(error[0]);
  if (failure != 0) {
    if (announce[0] >= 0) close(announce[0]);
    if (pid > 0) waitpid(pid, nullptr, 0);
    return absl::NotFoundError(absl::StrCat("cannot run '", options.command[0], "': ", std::strerror(failure)));
  }
  Process process;
  process.pid_ = pid;
  process.own_group_ = options.own_group;
  process.announce_fd_ = announce[0];
  return process;
}

Process::Process(Process&& other) noexcept { *this = std::move(other); }

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(own_group_, other.own_group_);
  std::swap(announce_fd_, other.announce_fd_);
  std::swap(ending_, other.ending_);
  return *this;
}

Process::~Process() {
  if (running()) Stop(absl::ZeroDuration());
  if (announce_fd_ >= 0) close(announce_fd_);
}

absl::StatusOr<std::string> Process::AwaitAnnouncement(absl::Duration timeout) {
  absl::Time deadline = absl::Now() + timeout;
  std::string line;
  while (line.empty() || line.back() != '\n') {
    pollfd poll_fd{announce_fd_, POLLIN, 0};
    // Looks at least once, however short the timeout.
    int wait_ms = std::max(0, static_cast<int>(absl::ToInt64Milliseconds(deadline - absl::Now())));
    int ready = poll(&poll_fd, 1, wait_ms);
    if (ready < 0 && errno == EINTR) return absl::CancelledError("interrupted");
    if (ready == 0) return absl::DeadlineExceededError("it did not become ready in time");
    char byte;
    if (read(announce_fd_, &byte, 1) != 1) return absl::AbortedError("it ended before it was ready");
    line.push_back(byte);
  }
  line.pop_back();
  constexpr absl::string_view kError = "error: ";
  if (absl::StartsWith(line, kError)) return absl::FailedPreconditionError(line.substr(kError.size()));
  return line;
}

std::optional<Ending> Process::Poll() {
  int status;
  if (!ending_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) ending_ = EndingOf(status);
  return ending_;
}

std::optional<Ending> Process::Wait(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  // The kernel tells of its end: to look again and again would take a few percent of a core from what it runs.
  const int end = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  while (!Poll().has_value() && absl::Now() < deadline) {
    if (end < 0) {
      absl::SleepFor(absl::Milliseconds(2));
      continue;
    }
    pollfd ended{end, POLLIN, 0};
    poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(deadline - absl::Now())) + 1);
  }
  if (end >= 0) close(end);
  return ending_;
}

void Process::Signal(int signal) {
  if (running()) kill(own_group_ ? -pid_ : pid_, signal);
}

void Process::Stop(absl::Duration grace) {
  if (!running()) return;
  if (grace > absl::ZeroDuration()) {
    Signal(SIGTERM);
    if (Wait(grace).has_value()) return;
  }
  Signal(SIGKILL);
  Wait(absl::Seconds(10));
}

void Announce(int fd, const std::string& line) {
  if (fd < 0) return;
  std::string text = absl::StrCat(line, "\n");
  (void)!write(fd, text.data(), text.size());
}

}  // namespace gangway::cli
