#include "gangway/tunnel/entrance.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <list>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/tunnel/copy.h"

namespace gangway::tunnel {
namespace {

constexpr char kHost[] = "127.0.0.1";

// A TCP connection of this machine in a call to the exit. Two threads.
class Connection {
 public:
  Connection(net::Socket socket, v1::Tunnel::Stub& stub, const std::string& port) : socket_(std::move(socket)) {
    context_.AddMetadata(kPortMetadata, port);
    stream_ = stub.Open(&context_);
    out_ = std::thread([this] {
      SocketToStream(socket_, *stream_);
      stream_->WritesDone();
    });
    in_ = std::thread([this] {
      StreamToSocket(*stream_, socket_);
      socket_.Shutdown();  // nobody would read what the client still writes
      over_ = true;
    });
  }
  ~Connection() {
    context_.TryCancel();
    socket_.Shutdown();
    out_.join();
    in_.join();
    (void)stream_->Finish();
  }
  bool over() const { return over_; }

 private:
  const net::Socket socket_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Piece, v1::Piece>> stream_;
  std::atomic<bool> over_ = false;
  std::thread out_, in_;
};

// The connections to one port behind the tunnel.
class Door {
 public:
  Door(net::Socket listener, v1::Tunnel::Stub& stub, std::string port)
      : listener_(std::move(listener)), stub_(stub), port_(std::move(port)), acceptor_([this] { Accept(); }) {}
  ~Door() {
    listener_.Shutdown();
    acceptor_.join();
  }
  std::string address() const { return absl::StrCat(kHost, ":", listener_.port()); }

 private:
  void Accept() {
    std::list<Connection> connections;
    while (true) {
      net::Socket socket = listener_.Accept();
      if (!socket.valid()) return;
      connections.remove_if([](const Connection& connection) { return connection.over(); });
      connections.emplace_back(std::move(socket), stub_, port_);
    }
  }

  const net::Socket listener_;
  v1::Tunnel::Stub& stub_;
  const std::string port_;
  std::thread acceptor_;
};

class GrpcEntrance final : public Entrance {
 public:
  explicit GrpcEntrance(const std::shared_ptr<grpc::Channel>& channel) : stub_(v1::Tunnel::NewStub(channel)) {}

  absl::Status Open(const std::string& port) {
    GW_ASSIGN_OR_RETURN(net::Socket listener, net::ListenTcp(kHost, /*port=*/0));
    doors_.emplace_back(std::move(listener), *stub_, port);
    addresses_[port] = doors_.back().address();
    return absl::OkStatus();
  }
  const std::map<std::string, std::string>& addresses() const override { return addresses_; }

 private:
  const std::unique_ptr<v1::Tunnel::Stub> stub_;
  std::list<Door> doors_;
  std::map<std::string, std::string> addresses_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Entrance>> OpenEntrance(const EntranceOptions& options) {
  auto channel = grpc::CreateChannel(options.exit, grpc::SslCredentials({options.authorities, "", ""}));
  if (!channel->WaitForConnected(absl::ToChronoTime(absl::Now() + options.timeout))) {
    return absl::UnavailableError(
        absl::StrCat("no controller answers at ", options.exit, ", or not one whose certificate is believed"));
  }
  auto entrance = std::make_unique<GrpcEntrance>(channel);
  for (const std::string& port : options.ports) GW_RETURN_IF_ERROR(entrance->Open(port));
  return std::unique_ptr<Entrance>(std::move(entrance));
}

}  // namespace gangway::tunnel
