// What gRPC needs to know of who a process is and whom it believes. Internal to net/grpc.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "gangway/net/tls.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace gangway::net {

// Both ends show certificates; without any the connection is in the clear.
std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const Tls& tls);
// The server's certificate names the address that is called.
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(const Tls& tls);
// The server shows exactly this certificate, whatever it names.
std::shared_ptr<grpc::ChannelCredentials> PinnedCredentials(const Tls& tls, std::string certificate);

// The first certificate of a PEM text, in one form; "" when there is none.
std::string FirstCertificate(absl::string_view pem);

}  // namespace gangway::net
