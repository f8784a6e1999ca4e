// The gRPC service of gangway.v1.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "gangway/controller/controller.h"

namespace grpc {
class Service;
}

namespace gangway::program_api {

struct ServiceOptions {
  int max_sessions = 256;
  // A stream that has not opened its session by then loses its place.
  absl::Duration open_within = absl::Seconds(30);
};

// To be registered in a server, whose threads serve it; both the service and the controller must outlive the server.
std::shared_ptr<grpc::Service> MakeService(controller::Controller& controller, const ServiceOptions& options = {});

}  // namespace gangway::program_api
