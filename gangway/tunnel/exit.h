// The controller's end of the tunnel.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gangway/net/tls.h"

namespace gangway::tunnel {

struct ExitOptions {
  std::string address;  // host:port to listen on; port 0: any free one
  net::Tls tls;         // certificate and key are shown; clients need none
  // Where connections lead, by the name that the entrance asks for: host:port, on loopback.
  std::map<std::string, std::string> ports;
  int max_connections = 512;  // each has two threads
};

// Serves until destroyed, which ends every connection first. Thread-safe.
class Exit {
 public:
  virtual ~Exit() = default;
  virtual std::string address() const = 0;  // with the port the system chose
};

// UNAVAILABLE naming the address when it cannot be listened on, also when certificate and key are no pair.
absl::StatusOr<std::unique_ptr<Exit>> OpenExit(ExitOptions options);

}  // namespace gangway::tunnel
