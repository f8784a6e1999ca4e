#include "gangway/tunnel/exit.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/net/address.h"
#include "gangway/tunnel/copy.h"
#include "spdlog/spdlog.h"

namespace gangway::tunnel {
namespace {

constexpr int kAskAfterMs = 60 * 1000, kAnswerWithinMs = 5 * 60 * 1000;

using Stream = grpc::ServerReaderWriter<v1::Piece, v1::Piece>;

// gRPC's threads run Open; each connection keeps one, and one more for the other direction.
class Service final : public v1::Tunnel::Service {
 public:
  Service(std::map<std::string, std::string> ports, int max_connections)
      : ports_(std::move(ports)), max_connections_(max_connections) {}

  grpc::Status Open(grpc::ServerContext* context, Stream* stream) override {
    const grpc::Status status = open_.fetch_add(1) < max_connections_
                                    ? Carry(*context, *stream)
                                    : grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                                   absl::StrCat("already ", max_connections_, " connections"));
    --open_;
    if (!status.ok()) spdlog::warn("tunnel: {} refused: {}", context->peer(), status.error_message());
    return status;
  }

 private:
  grpc::Status Carry(grpc::ServerContext& context, Stream& stream) {
    const auto name = context.client_metadata().find(kPortMetadata);
    const auto port = name == context.client_metadata().end()
                          ? ports_.end()
                          : ports_.find(std::string(name->second.data(), name->second.size()));
    if (port == ports_.end()) return {grpc::StatusCode::NOT_FOUND, "the tunnel does not lead there"};
    auto socket = net::ConnectTcp(port->second);
    if (!socket.ok()) return {grpc::StatusCode::UNAVAILABLE, std::string(socket.status().message())};
    spdlog::info("tunnel: {} connected to {}", context.peer(), port->first);
    std::thread back([&] { SocketToStream(*socket, stream); });
    StreamToSocket(stream, *socket);
    if (context.IsCancelled()) socket->Shutdown();
    back.join();
    return grpc::Status::OK;
  }

  const std::map<std::string, std::string> ports_;
  const int max_connections_;
  std::atomic<int> open_ = 0;
};

class GrpcExit final : public Exit {
 public:
  explicit GrpcExit(const ExitOptions& options) : service_(options.ports, options.max_connections) {}
  ~GrpcExit() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Listen(const ExitOptions& options) {
    grpc::SslServerCredentialsOptions credentials(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    credentials.pem_key_cert_pairs.push_back({options.tls.key, options.tls.certificate});
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(options.address, grpc::SslServerCredentials(credentials), &port);
    builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // two servers on one port must be an error
    // A client whose machine is gone says nothing; what it has on the cluster hangs on its connections here.
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kAskAfterMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kAnswerWithinMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", options.address, " (is the port in use, are certificate and key a pair?)"));
    }
    address_ = net::WithPort(options.address, port);
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

 private:
  Service service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Exit>> OpenExit(ExitOptions options) {
  auto exit = std::make_unique<GrpcExit>(options);
  GW_RETURN_IF_ERROR_WITH(exit->Listen(options), "tunnel");
  return std::unique_ptr<Exit>(std::move(exit));
}

}  // namespace gangway::tunnel
