// A fabric over gRPC: streams of parcels with mutual TLS, for hosts whose network others are on too.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gangway/net/fabric.h"
#include "gangway/net/tls.h"

namespace gangway::net {

// Listens on `listen`, host:port as others reach it; port 0 lets the system choose. UNAVAILABLE naming it when it
// cannot be listened on. Who calls shows a certificate and knows this end's secret, which only its address tells; the
// one that is called shows the certificate that its address tells. Without certificates, for tests, it is in the clear.
absl::StatusOr<std::shared_ptr<Fabric>> MakeGrpcFabric(const std::string& listen, const Tls& tls);

}  // namespace gangway::net
