// The gRPC door for stock JAX clients.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gangway/base/clock.h"
#include "gangway/controller/controller.h"

namespace grpc {
class Service;
}

namespace gangway::ifrt_proxy {

struct ServerOptions {
  std::string address = "127.0.0.1:0";              // port 0: any free one
  int64_t host_buffer_capacity = int64_t{8} << 30;  // bytes a session may have in flight beside its stream
  int max_sessions = 256;
  int64_t max_message_bytes = int64_t{512} << 20;
  // A client whose machine is gone says nothing, not even that: it is asked after a while, and given up if it does not
  // answer for as long as one may be stopped that goes on.
  absl::Duration ask_after = absl::Minutes(1);
  absl::Duration answer_within = absl::Minutes(5);
  // Served at the same address; not owned, must outlive the server.
  std::vector<grpc::Service*> more_services;
};

// Serves until destroyed, which ends every session first. The controller must outlive it. Thread-safe.
class Server {
 public:
  virtual ~Server() = default;
  virtual int port() const = 0;
  virtual int callback_port() const = 0;  // of the connections of host callbacks, at the same host
};

// ALREADY_EXISTS naming the address when it cannot be listened on.
absl::StatusOr<std::unique_ptr<Server>> StartServer(controller::Controller& controller, const Clock& clock,
                                                    const ServerOptions& options);

}  // namespace gangway::ifrt_proxy
