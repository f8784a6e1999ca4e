// A fabric over UCX: shared memory between workers of one host, TCP or RDMA between hosts.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "gangway/net/fabric.h"

namespace gangway::net {

// UNAVAILABLE with UCX's reason where it does not start. Its transports are chosen by UCX's own environment variables
// (UCX_TLS, UCX_NET_DEVICES).
absl::StatusOr<std::shared_ptr<Fabric>> MakeUcxFabric();

}  // namespace gangway::net
