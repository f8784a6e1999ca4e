// The client's end of the tunnel.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gangway::tunnel {

struct EntranceOptions {
  std::string exit;                // host:port of the controller's end
  std::string authorities;         // PEM texts of those who may have signed its certificate
  std::vector<std::string> ports;  // behind the tunnel, by name
  absl::Duration timeout = absl::Seconds(30);
};

// Carries connections until destroyed, which ends them. Thread-safe.
class Entrance {
 public:
  virtual ~Entrance() = default;
  // Where each port of the options is found on this machine, host:port by name.
  virtual const std::map<std::string, std::string>& addresses() const = 0;
};

// UNAVAILABLE naming the exit when it does not answer in time, or its certificate is not believed.
absl::StatusOr<std::unique_ptr<Entrance>> OpenEntrance(const EntranceOptions& options);

}  // namespace gangway::tunnel
