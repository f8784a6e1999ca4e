// The HTTP server of a controller's status.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gangway/controller/controller.h"

namespace gangway::status {

// Serves until it is destroyed, on threads of its own. Borrows the controller.
class Server {
 public:
  virtual ~Server() = default;
  virtual std::string address() const = 0;  // host:port, with the port the system chose
};

// `address` is host:port of this machine's loopback, port 0 for any free one; INVALID_ARGUMENT for other hosts.
absl::StatusOr<std::unique_ptr<Server>> Serve(controller::Controller& controller, const std::string& address);

}  // namespace gangway::status
