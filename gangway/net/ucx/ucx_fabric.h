// A fabric over UCX: shared memory between workers of one host, RDMA or TCP between hosts.
//
// UCX asks nobody who he is, and TCP's receiver writes where the sender tells it to: whoever reaches the port may write
// into the process. Between hosts it is for networks that nobody else is on.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "gangway/net/fabric.h"

namespace gangway::net {

enum class UcxReach {
  kHost,     // processes of this host, through shared memory; no port is open
  kNetwork,  // whatever UCX finds or its environment says (UCX_TLS, UCX_NET_DEVICES)
};

// UNAVAILABLE with UCX's reason where it does not start.
absl::StatusOr<std::shared_ptr<Fabric>> MakeUcxFabric(UcxReach reach);

}  // namespace gangway::net
