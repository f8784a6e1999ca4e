// Where log lines of our processes go.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace gangway::cli {

struct LogOptions {
  std::string level = "info";   // trace, debug, info, warn, error or off
  std::string format = "text";  // or json: an object a line, with time (UTC), level, process and message
};

// --log-level and --log-format.
void AddLogOptions(CLI::App& command, LogOptions* options);

// Lines of at least the level go to standard error, each with its process ("controller", "worker 0").
void SetUpLogging(const std::string& process, const LogOptions& options);

// Tells why the process cannot go on, once: to whoever started it by --announce-fd, or in the log when nobody listens.
void AnnounceError(int announce_fd, const absl::Status& status);

}  // namespace gangway::cli
