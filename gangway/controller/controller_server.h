// The controller as a process has it: listening for workers, with its own clock and threads.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gangway/controller/controller.h"
#include "gangway/controller/runtime_controller.h"
#include "gangway/net/tls.h"

namespace gangway::controller {

struct ControllerServerOptions {
  std::string worker_address = "127.0.0.1:0";  // where workers connect: host:port or unix:/path; empty: nowhere
  net::Tls worker_tls;                         // whom workers find there; none: on loopback only
  ControllerOptions controller;                // `compile` is CompileArtifact, but in tests
};

// Thread-safe. Whoever uses the controller must be gone before the destructor, which sends the workers away.
class ControllerServer {
 public:
  virtual ~ControllerServer() = default;
  virtual RuntimeController& controller() = 0;
  virtual std::string worker_address() const = 0;  // with the port the system chose
  // Blocks until that many devices have joined; DEADLINE_EXCEEDED saying how many have.
  virtual absl::Status WaitForDevices(int count, absl::Time deadline) = 0;
};

absl::StatusOr<std::unique_ptr<ControllerServer>> StartControllerServer(ControllerServerOptions options);

// The compiler behind the controller: a StableHLO portable artifact read, partitioned and lowered.
absl::StatusOr<compile::CompiledProgram> CompileArtifact(const std::string& artifact,
                                                         const compile::CompileOptions& options);

}  // namespace gangway::controller
