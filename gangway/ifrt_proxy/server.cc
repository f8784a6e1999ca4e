#include "gangway/ifrt_proxy/server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gangway/base/status.h"
#include "gangway/ifrt_proxy/callback_server.h"
#include "gangway/ifrt_proxy/host_buffer_calls.h"
#include "gangway/ifrt_proxy/protocol.h"
#include "gangway/ifrt_proxy/session.h"
#include "gangway/ifrt_proxy/session_streams.h"
#include "gangway/net/address.h"
#include "spdlog/spdlog.h"
#include "xla/python/ifrt_proxy/common/grpc_ifrt_service.grpc.pb.h"

namespace gangway::ifrt_proxy {
namespace {

using namespace xla::ifrt::proxy;  // NOLINT: the service's messages

constexpr char kSessionMetadata[] = "ifrt-proxy-grpc-ifrt-session-metadata-bin";
constexpr char kStoreMetadata[] = "ifrt-proxy-grpc-host-buffer-store-metadata-bin";
constexpr absl::Duration kLookupDeadline = absl::Minutes(10);

template <typename Message>
absl::StatusOr<Message> ReadMetadata(const grpc::ServerContext& context, const char* key) {
  auto it = context.client_metadata().find(key);
  Message message;
  if (it == context.client_metadata().end() ||
      !message.ParseFromArray(it->second.data(), static_cast<int>(it->second.size()))) {
    return absl::InvalidArgumentError(absl::StrCat("missing or malformed metadata ", key));
  }
  return message;
}

controller::SessionInfo InfoOf(const GrpcIfrtSessionMetadata& metadata, const grpc::ServerContext& context) {
  controller::SessionInfo info;
  info.name = context.peer();
  const auto& attributes = metadata.initialization_data().attributes();
  if (auto it = attributes.find("token"); it != attributes.end()) info.token = it->second.string_value();
  if (auto it = attributes.find("tenant"); it != attributes.end()) info.tenant = it->second.string_value();
  // Clients of JAX can only send whole numbers.
  if (auto it = attributes.find("weight"); it != attributes.end()) {
    if (it->second.float_value() > 0) info.weight = it->second.float_value();
    if (it->second.int64_value() > 0) info.weight = static_cast<double>(it->second.int64_value());
  }
  if (auto it = attributes.find("priority"); it != attributes.end()) {
    info.priority = static_cast<int>(std::clamp<int64_t>(it->second.int64_value(), -1000, 1000));
  }
  return info;
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(duration), INT32_MAX));
}

// The system's: nobody guesses it from others. Fits into the signed numbers that clients are told, and is not zero.
uint64_t Secret() {
  std::random_device system;
  return (uint64_t{system()} << 30 ^ system()) | 1;
}

// Sessions by their keys, for the calls that travel beside a session's stream. Thread-safe.
class SessionTable {
 public:
  explicit SessionTable(size_t limit) : limit_(limit) {}

  // A number and a key for a session that is about to open.
  absl::Status Reserve(Session::Options* options) {
    absl::MutexLock lock(&mutex_);
    if (sessions_.size() >= limit_) return absl::ResourceExhaustedError(absl::StrCat("already ", limit_, " sessions"));
    options->session_id = ++last_;
    do {
      options->key = Secret();
    } while (!sessions_.try_emplace(options->key).second);
    return absl::OkStatus();
  }
  void Put(uint64_t key, std::shared_ptr<Session> session) {
    absl::MutexLock lock(&mutex_);
    sessions_[key] = std::move(session);
  }
  void Remove(uint64_t key) {
    absl::MutexLock lock(&mutex_);
    sessions_.erase(key);
  }
  absl::StatusOr<std::shared_ptr<HostBuffers>> Buffers(uint64_t key) const {
    absl::MutexLock lock(&mutex_);
    auto it = sessions_.find(key);
    if (it == sessions_.end() || it->second == nullptr) return absl::NotFoundError("no such session");
    return it->second->host_buffers();
  }
  std::shared_ptr<Session> Find(uint64_t key, uint64_t secret) const {
    absl::MutexLock lock(&mutex_);
    auto it = sessions_.find(key);
    const bool known = it != sessions_.end() && it->second != nullptr;
    return known && it->second->options().callback_secret == secret ? it->second : nullptr;
  }
  std::vector<std::shared_ptr<Session>> All() const {
    absl::MutexLock lock(&mutex_);
    std::vector<std::shared_ptr<Session>> all;
    for (const auto& [key, session] : sessions_) {
      if (session != nullptr) all.push_back(session);
    }
    return all;
  }

 private:
  const size_t limit_;
  mutable absl::Mutex mutex_;
  // Shared with the calls that use them; a null session is about to open.
  absl::flat_hash_map<uint64_t, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Streams of sessions are served by their own threads, small and frequent calls by gRPC's.
using ServiceBase = GrpcIfrtService::WithAsyncMethod_IfrtSession<GrpcIfrtService::WithCallbackMethod_HostBufferLookup<
    GrpcIfrtService::WithCallbackMethod_HostBufferDelete<GrpcIfrtService::Service>>>;

// gRPC's threads run the calls that travel beside the sessions' streams.
class Service final : public ServiceBase {
 public:
  Service(controller::Controller& controller, const Clock& clock, const ServerOptions& options)
      : controller_(controller), clock_(clock), options_(options), sessions_(options.max_sessions) {}

  // Lets sessions give up what they have waited for too long.
  void ExpireWaits() {
    for (const std::shared_ptr<Session>& session : sessions_.All()) {
      session->host_buffers()->Expire(clock_.Now());
      controller_.loop().Post([session, now = clock_.Now()] { session->ExpireWait(now); });
    }
  }

  void set_callback_port(int port) { callback_port_ = port; }
  std::shared_ptr<Session> FindSession(uint64_t key, uint64_t secret) const { return sessions_.Find(key, secret); }

  grpc::Status GetVersion(grpc::ServerContext*, const GrpcGetVersionRequest* request,
                          GrpcGetVersionResponse* response) override {
    auto version = NegotiateVersion(request->min_version(), request->max_version());
    if (!version.ok()) return ToGrpc(version.status());
    *response->mutable_version() = *std::move(version);
    return grpc::Status::OK;
  }

  // What the streams ask for.
  SessionHooks Hooks() {
    return {[this](const grpc::ServerContext& context, Reply::Sink sink) { return Begin(context, std::move(sink)); },
            [this](const Session& session) { sessions_.Remove(session.options().key); }};
  }

  grpc::Status HostBufferStore(grpc::ServerContext* context, grpc::ServerReader<GrpcHostBufferStoreRequest>* reader,
                               GrpcHostBufferStoreResponse*) override {
    auto metadata = ReadMetadata<GrpcHostBufferStoreMetadata>(*context, kStoreMetadata);
    if (!metadata.ok()) return ToGrpc(metadata.status());
    auto buffers = sessions_.Buffers(metadata->session_id());
    if (!buffers.ok()) return ToGrpc(buffers.status());
    absl::Status status = ReceiveBuffer(*metadata, reader, **buffers);
    if (!status.ok()) (*buffers)->StoreError(metadata->handle(), status);
    return ToGrpc(status);
  }

  LookupReactor* HostBufferLookup(grpc::CallbackServerContext*, const GrpcHostBufferLookupRequest* request) override {
    return AnswerLookup(sessions_.Buffers(request->session_id()), request->handle(), clock_.Now() + kLookupDeadline);
  }

  grpc::ServerUnaryReactor* HostBufferDelete(grpc::CallbackServerContext* context,
                                             const GrpcHostBufferDeleteRequest* request,
                                             GrpcHostBufferDeleteResponse*) override {
    auto buffers = sessions_.Buffers(request->session_id());
    if (buffers.ok()) (*buffers)->Delete(request->handle());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(buffers.status()));
    return reactor;
  }

  grpc::Status HostBufferReadFromDisk(grpc::ServerContext*, const GrpcHostBufferReadFromDiskRequest*,
                                      GrpcHostBufferReadFromDiskResponse*) override {
    // A client names a file for us to open: never done.
    return grpc::Status(
        grpc::StatusCode::UNIMPLEMENTED,
        "transfers through files are not served; unset IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_THRESHOLD_BYTES");
  }

 private:
  static absl::Status ReceiveBuffer(const GrpcHostBufferStoreMetadata& metadata,
                                    grpc::ServerReader<GrpcHostBufferStoreRequest>* reader, HostBuffers& buffers) {
    int64_t size = metadata.buffer_size();
    if (size < 0)
      return absl::InvalidArgumentError(absl::StrCat("host buffer ", metadata.handle(), " of negative size"));
    HostBuffers::Arrival arrival(buffers);
    std::string bytes;
    // A claimed size is only believed as bytes arrive.
    bytes.reserve(std::min<int64_t>(size, int64_t{64} << 20));
    GrpcHostBufferStoreRequest chunk;
    while (reader->Read(&chunk)) {
      if (static_cast<int64_t>(bytes.size() + chunk.data().size()) > size) {
        return absl::InvalidArgumentError(absl::StrCat("host buffer ", metadata.handle(), " is larger than announced"));
      }
      GW_RETURN_IF_ERROR_WITH(arrival.Add(static_cast<int64_t>(chunk.data().size())),
                              absl::StrCat("host buffer ", metadata.handle()));
      if (bytes.empty() && static_cast<int64_t>(chunk.data().size()) == size) {
        bytes = std::move(*chunk.mutable_data());
      } else {
        bytes.append(chunk.data());
      }
    }
    if (static_cast<int64_t>(bytes.size()) != size) {
      return absl::DataLossError(
          absl::StrCat("host buffer ", metadata.handle(), ": ", bytes.size(), " of ", size, " bytes arrived"));
    }
    arrival.Drop();
    return buffers.Store(metadata.handle(), std::make_shared<const std::string>(std::move(bytes)));
  }

  absl::StatusOr<std::shared_ptr<Session>> Begin(const grpc::ServerContext& context, Reply::Sink sink) {
    GW_ASSIGN_OR_RETURN(const GrpcIfrtSessionMetadata metadata,
                        ReadMetadata<GrpcIfrtSessionMetadata>(context, kSessionMetadata));
    Session::Options options;
    GW_RETURN_IF_ERROR(sessions_.Reserve(&options));
    options.info = InfoOf(metadata, context);
    options.callback_port = callback_port_;
    options.callback_secret = Secret();
    auto session = std::make_shared<Session>(
        controller_, clock_, std::make_shared<HostBuffers>(options_.host_buffer_capacity), options, std::move(sink));
    sessions_.Put(options.key, session);
    return session;
  }

  controller::Controller& controller_;
  const Clock& clock_;
  const ServerOptions options_;
  SessionTable sessions_;
  int callback_port_ = 0;  // set before the first session
};

class GrpcServer final : public Server {
 public:
  GrpcServer(std::unique_ptr<Service> service, std::unique_ptr<CallbackServer> callbacks,
             std::unique_ptr<SessionStreams> streams, std::unique_ptr<grpc::Server> server, int port)
      : service_(std::move(service)),
        callbacks_(std::move(callbacks)),
        streams_(std::move(streams)),
        server_(std::move(server)),
        port_(port),
        housekeeper_([this] { KeepHouse(); }) {}
  ~GrpcServer() override {
    stopping_.Notify();
    housekeeper_.join();
    // Open streams are cancelled at once: a client that hangs must not keep us.
    server_->Shutdown(std::chrono::system_clock::now());
    streams_.reset();
    server_->Wait();
    callbacks_.reset();
  }
  int port() const override { return port_; }
  int callback_port() const override { return callbacks_->port(); }

 private:
  void KeepHouse() {
    while (!stopping_.WaitForNotificationWithTimeout(absl::Seconds(1))) service_->ExpireWaits();
  }

  std::unique_ptr<Service> service_;
  std::unique_ptr<CallbackServer> callbacks_;
  std::unique_ptr<SessionStreams> streams_;
  std::unique_ptr<grpc::Server> server_;
  int port_;
  absl::Notification stopping_;
  std::thread housekeeper_;  // last: it uses the members above
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartServer(controller::Controller& controller, const Clock& clock,
                                                    const ServerOptions& options) {
  GW_ASSIGN_OR_RETURN_WITH(const net::Address address, net::ParseAddress(options.address), "clients");
  auto service = std::make_unique<Service>(controller, clock, options);
  GW_ASSIGN_OR_RETURN_WITH(std::unique_ptr<CallbackServer> callbacks,
                           StartCallbackServer(address.host, controller.loop(),
                                               [service = service.get()](uint64_t key, uint64_t secret) {
                                                 return service->FindSession(key, secret);
                                               }),
                           "host callbacks");
  service->set_callback_port(callbacks->port());
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
  // Threads that wait for calls also wake for the requests of the streams: one is enough.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // two servers on one port must be an error
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.ask_after));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.answer_within));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(std::min<int64_t>(options.max_message_bytes, INT32_MAX)));
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(service.get());
  for (grpc::Service* more : options.more_services) builder.RegisterService(more);
  auto streams = std::make_unique<SessionStreams>(
      builder.AddCompletionQueue(),
      [service = service.get()](SessionStream& stream, grpc::ServerCompletionQueue& queue, void* tag) {
        service->RequestIfrtSession(&stream.context(), &stream.call(), &stream.queue(), &queue, tag);
      },
      controller.loop(), service->Hooks());
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::AlreadyExistsError(absl::StrCat("cannot listen on ", options.address, ": address in use or not ours"));
  }
  streams->Start();
  return std::make_unique<GrpcServer>(std::move(service), std::move(callbacks), std::move(streams), std::move(server),
                                      port);
}

}  // namespace gangway::ifrt_proxy
