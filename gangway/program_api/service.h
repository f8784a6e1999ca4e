// The gRPC service of gangway.v1.
#pragma once

#include <memory>

#include "gangway/controller/controller.h"

namespace grpc {
class Service;
}

namespace gangway::program_api {

// To be registered in a server, whose threads serve it; both the service and the controller must outlive the server.
std::shared_ptr<grpc::Service> MakeService(controller::Controller& controller, int max_sessions = 256);

}  // namespace gangway::program_api
