#include "gangway/ifrt_proxy/callback_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gangway/base/status.h"

namespace gangway::ifrt_proxy {
namespace {

constexpr uint64_t kMagic = 0x31736c6c61635747;  // "GWcalls1": what both sides say first
constexpr uint64_t kMaxBytes = uint64_t{1} << 36;

// All numbers are little-endian, as on every machine we build for.
struct Hello {
  uint64_t magic = 0, session = 0, secret = 0;
};
struct CallHeader {
  uint64_t execution = 0, function = 0, size = 0;
};
struct ResultHeader {
  uint64_t execution = 0, code = 0, size = 0;  // code: an absl::StatusCode; the bytes are then the message
};

bool ReadAll(int socket, void* to, size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = read(socket, at, size);
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool WriteAll(int socket, const void* from, size_t size) {
  const char* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(int socket, Executor& loop, CallbackServer::FindSession find_session)
      : socket_(socket), loop_(loop), find_session_(std::move(find_session)) {}
  ~Connection() { close(socket_); }

  void Start() {
    reader_->Post([this] {
      Serve();
      over_ = true;
    });
  }
  // Ends both threads. Not on one of them.
  void Stop() {
    shutdown(socket_, SHUT_RDWR);
    reader_.reset();
    writer_.reset();
  }
  bool over() const { return over_; }

 private:
  void Serve() {
    Hello hello;
    if (!ReadAll(socket_, &hello, sizeof hello) || hello.magic != kMagic) return;
    std::shared_ptr<Session> session = find_session_(hello.session, hello.secret);
    if (session == nullptr || !WriteAll(socket_, &hello.magic, sizeof hello.magic)) return;
    loop_.Post([session, weak = weak_from_this()] {
      session->host_calls().Connect([weak](uint64_t execution, uint64_t function, SharedBytes operands) {
        if (auto self = weak.lock()) self->SendCall(execution, function, std::move(operands));
      });
    });
    while (ReadResult(session)) {
    }
    loop_.Post([session] { session->host_calls().Disconnect(); });
  }

  void SendCall(uint64_t execution, uint64_t function, SharedBytes operands) {
    writer_->Post([socket = socket_, execution, function, operands] {
      const CallHeader header = {execution, function, operands->size()};
      // A failure shows at the reader, which ends the connection.
      if (!WriteAll(socket, &header, sizeof header) || !WriteAll(socket, operands->data(), operands->size())) {
        shutdown(socket, SHUT_RDWR);
      }
    });
  }

  bool ReadResult(const std::shared_ptr<Session>& session) {
    ResultHeader header;
    if (!ReadAll(socket_, &header, sizeof header) || header.size > kMaxBytes) return false;
    auto bytes = std::make_shared<std::string>();
    while (bytes->size() < header.size) {  // a size is believed as bytes arrive
      const size_t at = bytes->size();
      bytes->resize(at + std::min<uint64_t>(header.size - at, uint64_t{16} << 20));
      if (!ReadAll(socket_, bytes->data() + at, bytes->size() - at)) return false;
    }
    loop_.Post([session, header, bytes] {
      absl::StatusOr<SharedBytes> results = SharedBytes(bytes);
      if (header.code != 0)
        results = absl::Status(static_cast<absl::StatusCode>(std::min<uint64_t>(header.code, 16)), *bytes);
      (void)session->host_calls().Return(header.execution, std::move(results));  // of a call that is over: nobody waits
    });
    return true;
  }

  const int socket_;
  Executor& loop_;
  const CallbackServer::FindSession find_session_;
  std::atomic<bool> over_ = false;
  std::unique_ptr<Executor> writer_ = MakeThreadExecutor("gw-calls-out");
  std::unique_ptr<Executor> reader_ = MakeThreadExecutor("gw-calls-in");
};

class TcpCallbackServer final : public CallbackServer {
 public:
  TcpCallbackServer(int listener, int port, Executor& loop, FindSession find_session)
      : listener_(listener), port_(port), loop_(loop), find_session_(std::move(find_session)) {
    acceptor_->Post([this] { Accept(); });
  }
  ~TcpCallbackServer() override {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.reset();
    close(listener_);
    for (auto& connection : connections_) connection->Stop();
  }
  int port() const override { return port_; }

 private:
  void Accept() {
    while (true) {
      const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      const int yes = 1;
      setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      std::erase_if(connections_, [](const auto& connection) {
        if (connection->over()) connection->Stop();
        return connection->over();
      });
      connections_.push_back(std::make_shared<Connection>(socket, loop_, find_session_));
      connections_.back()->Start();
    }
  }

  const int listener_, port_;
  Executor& loop_;
  const FindSession find_session_;
  // Shared with sessions' loops, which may have a call to send. Belongs to the acceptor's thread, and to the destructor
  // after that.
  std::vector<std::shared_ptr<Connection>> connections_;
  std::unique_ptr<Executor> acceptor_ = MakeThreadExecutor("gw-callbacks");
};

absl::StatusOr<int> Listen(const std::string& host) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  if (getaddrinfo(host.empty() ? nullptr : host.c_str(), "0", &hints, &found) != 0 || found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no address ", host));
  }
  const int listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool listens =
      listener >= 0 && bind(listener, found->ai_addr, found->ai_addrlen) == 0 && listen(listener, 64) == 0;
  freeaddrinfo(found);
  if (listens) return listener;
  if (listener >= 0) close(listener);
  return absl::UnavailableError(absl::StrCat("cannot listen on ", host, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CallbackServer>> StartCallbackServer(const std::string& host, Executor& loop,
                                                                    CallbackServer::FindSession find_session) {
  GW_ASSIGN_OR_RETURN(const int listener, Listen(host));
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const int port = ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                                       : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  return std::make_unique<TcpCallbackServer>(listener, port, loop, std::move(find_session));
}

}  // namespace gangway::ifrt_proxy
