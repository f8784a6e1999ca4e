#include "gangway/ifrt_proxy/callback_server.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gangway/base/status.h"
#include "gangway/net/tcp/socket.h"

namespace gangway::ifrt_proxy {
namespace {

constexpr uint64_t kMagic = 0x32736c6c61635747;  // "GWcalls2": what both sides say first
// Of what a function failed with: the rest is not told.
constexpr size_t kMostErrorBytes = size_t{1} << 20;
// Connections at a time, each with two threads; there are fewer sessions.
constexpr size_t kMostConnections = 512;
// For a client to say which session it is of.
constexpr absl::Duration kIntroduction = absl::Seconds(10);

// All numbers are little-endian, as on every machine we build for.
struct Hello {
  uint64_t magic = 0, session = 0, secret = 0;
};
struct CallHeader {
  uint64_t execution = 0, function = 0;
  int64_t device = 0;
  uint64_t size = 0;
};
struct ResultHeader {
  uint64_t execution = 0, code = 0, size = 0;  // code: an absl::StatusCode; the bytes are then the message
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(net::Socket socket, Executor& loop, CallbackServer::FindSession find_session)
      : socket_(std::move(socket)), loop_(loop), find_session_(std::move(find_session)) {}

  void Start() {
    reader_->Post([this] {
      Serve();
      over_ = true;
    });
  }
  // Ends both threads. Not on one of them.
  void Stop() {
    socket_.Shutdown();
    reader_.reset();
    writer_.reset();
  }
  bool over() const { return over_; }

 private:
  void Serve() {
    Hello hello;
    socket_.LimitReads(kIntroduction);
    if (!socket_.ReadAll(&hello, sizeof hello) || hello.magic != kMagic) return;
    socket_.LimitReads(absl::InfiniteDuration());
    std::shared_ptr<Session> session = find_session_(hello.session, hello.secret);
    if (session == nullptr || !socket_.WriteAll(&hello.magic, sizeof hello.magic)) return;
    const auto number = std::make_shared<int>(0);  // the loop's
    loop_.Post([session, number, weak = weak_from_this()] {
      *number = session->host_calls().Connect([weak](HostCalls::Outgoing call) {
        if (auto self = weak.lock()) self->SendCall(std::move(call));
      });
    });
    while (ReadResult(session)) {
    }
    loop_.Post([session, number] { session->host_calls().Disconnect(*number); });
  }

  void SendCall(HostCalls::Outgoing call) {
    writer_->Post([&socket = socket_, call = std::move(call)] {
      const CallHeader header = {call.execution, call.function, call.device, call.operands->size()};
      // A failure shows at the reader, which ends the connection.
      const bool sent =
          socket.WriteAll(&header, sizeof header) && socket.WriteAll(call.operands->data(), call.operands->size());
      if (!sent) socket.Shutdown();
    });
  }

  bool ReadResult(const std::shared_ptr<Session>& session) {
    ResultHeader header;
    const auto most = static_cast<uint64_t>(session->host_buffers()->capacity());
    if (!socket_.ReadAll(&header, sizeof header) || header.size > most) return false;
    auto bytes = std::make_shared<std::string>();
    for (uint64_t left = header.size; left > 0;) {  // a size is believed as bytes arrive
      const size_t at = bytes->size(), piece = std::min(left, uint64_t{16} << 20);
      bytes->resize(at + piece);
      if (!socket_.ReadAll(bytes->data() + at, piece)) return false;
      left -= piece;
      if (header.code != 0 && bytes->size() > kMostErrorBytes) bytes->resize(kMostErrorBytes);
    }
    loop_.Post([session, header, bytes] {
      absl::StatusOr<SharedBytes> results = SharedBytes(bytes);
      if (header.code != 0)
        results = absl::Status(static_cast<absl::StatusCode>(std::min<uint64_t>(header.code, 16)), *bytes);
      (void)session->host_calls().Return(header.execution, std::move(results));  // of a call that is over: nobody waits
    });
    return true;
  }

  const net::Socket socket_;
  Executor& loop_;
  const CallbackServer::FindSession find_session_;
  std::atomic<bool> over_ = false;
  std::unique_ptr<Executor> writer_ = MakeThreadExecutor("gw-calls-out");
  std::unique_ptr<Executor> reader_ = MakeThreadExecutor("gw-calls-in");
};

class TcpCallbackServer final : public CallbackServer {
 public:
  TcpCallbackServer(net::Socket listener, Executor& loop, FindSession find_session)
      : listener_(std::move(listener)), loop_(loop), find_session_(std::move(find_session)) {
    acceptor_->Post([this] { Accept(); });
  }
  ~TcpCallbackServer() override {
    listener_.Shutdown();
    acceptor_.reset();
    for (auto& connection : connections_) connection->Stop();
  }
  int port() const override { return listener_.port(); }

 private:
  void Accept() {
    while (true) {
      net::Socket socket = listener_.Accept();
      if (!socket.valid()) return;
      std::erase_if(connections_, [](const auto& connection) {
        if (connection->over()) connection->Stop();
        return connection->over();
      });
      if (connections_.size() >= kMostConnections) continue;  // it is closed
      connections_.push_back(std::make_shared<Connection>(std::move(socket), loop_, find_session_));
      connections_.back()->Start();
    }
  }

  const net::Socket listener_;
  Executor& loop_;
  const FindSession find_session_;
  // Shared with sessions' loops, which may have a call to send. Belongs to the acceptor's thread, and to the destructor
  // after that.
  std::vector<std::shared_ptr<Connection>> connections_;
  std::unique_ptr<Executor> acceptor_ = MakeThreadExecutor("gw-callbacks");
};

}  // namespace

absl::StatusOr<std::unique_ptr<CallbackServer>> StartCallbackServer(const std::string& host, Executor& loop,
                                                                    CallbackServer::FindSession find_session) {
  GW_ASSIGN_OR_RETURN(net::Socket listener, net::ListenTcp(host, /*port=*/0));
  return std::make_unique<TcpCallbackServer>(std::move(listener), loop, std::move(find_session));
}

}  // namespace gangway::ifrt_proxy
