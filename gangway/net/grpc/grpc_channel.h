// Channels between processes, over gRPC. An address is host:port or unix:/path, as gRPC has them.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gangway/net/channel.h"
#include "gangway/net/tls.h"

namespace gangway::net {

// The worker's end. Blocks until connected; UNAVAILABLE naming the address when the deadline passes first, also when
// the other end's certificate is not believed, or it has none and we have. The channel has one thread, which reads and
// runs the handlers. Payloads that arrive are aligned for devices to use in place.
absl::StatusOr<std::unique_ptr<Channel>> ConnectGrpc(const std::string& address, absl::Time deadline,
                                                     const Tls& tls = {});

// The controller's end: port 0 lets the system choose. UNAVAILABLE naming the address when it cannot be listened on.
// One thread serves all connections and runs all their handlers. Channels must be destroyed before the server.
// Payloads that arrive are strings. With a certificate of its own it serves only those who show one too.
absl::StatusOr<std::unique_ptr<Server>> ServeGrpc(const std::string& address, AcceptHandler accept,
                                                  const Tls& tls = {});

}  // namespace gangway::net
