#include "gangway/net/grpc/grpc_channel.h"

#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gangway/net/grpc/credentials.h"
#include "gangway/net/grpc/grpc_stream.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace gangway::net {
namespace {

constexpr char kMethod[] = "/gangway.Runtime/Connect";
constexpr int kMaxFrame = 64 << 20;
constexpr absl::Duration kPatience = absl::Milliseconds(500);  // for a peer that does not take its leave
constexpr absl::Duration kCancelled = absl::Seconds(60);  // for events of a call that is cancelled: they come at once

class ClientStream final : public GrpcStream {
 public:
  ClientStream(std::string peer, std::shared_ptr<grpc::Channel> channel)
      : GrpcStream(std::move(peer), PayloadForm::kAligned), stub_(std::move(channel)) {}

  void Call(grpc::CompletionQueue* queue) {
    call_ = stub_.PrepareCall(&context_, kMethod, queue);
    started_event_.self = std::static_pointer_cast<ClientStream>(shared_from_this());
    call_->StartCall(static_cast<GrpcTag*>(&started_event_));
  }
  void Cancel() override { context_.TryCancel(); }

 private:
  struct StartedEvent final : GrpcTag {
    std::shared_ptr<ClientStream> self;
    void Done(bool ok) override {
      auto stream = std::move(self);
      if (ok) return stream->Ready();
      stream->Fail(absl::UnavailableError(absl::StrCat("cannot call ", stream->peer())));
    }
  };
  void StartRead(grpc::ByteBuffer* frame, void* tag) override { call_->Read(frame, tag); }
  void StartWrite(const grpc::ByteBuffer& frame, void* tag) override { call_->Write(frame, tag); }
  void StartEnd(const absl::Status&, void* tag) override { call_->WritesDone(tag); }
  bool StartFinish(void* tag) override {
    call_->Finish(&status_, tag);
    return true;
  }
  absl::Status PeerReason() const override {
    if (status_.ok()) return absl::UnavailableError(absl::StrCat(peer(), " closed the connection"));
    return FromGrpc(status_);
  }

  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::Status status_;
  StartedEvent started_event_;
};

class ClientChannel final : public Channel {
 public:
  explicit ClientChannel(std::shared_ptr<ClientStream> stream) : stream_(std::move(stream)) {
    stream_->Call(&queue_);
    thread_ = std::thread([this] { ServeQueue(queue_); });
    pthread_setname_np(thread_.native_handle(), "gw-net");
  }
  ~ClientChannel() override {
    stream_->Detach();
    stream_->Close(absl::UnavailableError("gone"));
    if (!stream_->AwaitOver(absl::Now() + kPatience)) {
      stream_->Cancel();
      stream_->AwaitOver(absl::Now() + kCancelled);
    }
    queue_.Shutdown();  // no event may begin after this
    thread_.join();
  }
  void Start(ChannelHandler handler) override { stream_->Start(std::move(handler)); }
  absl::Status Send(Message message) override { return stream_->Send(std::move(message), false); }
  absl::Status SendLater(Message message) override { return stream_->Send(std::move(message), true); }
  void Flush() override { stream_->Flush(); }
  void Close(absl::Status reason) override { stream_->Close(std::move(reason)); }
  std::string peer() const override { return stream_->peer(); }

 private:
  grpc::CompletionQueue queue_;
  const std::shared_ptr<ClientStream> stream_;
  std::thread thread_;
};

class ServerStream final : public GrpcStream {
 public:
  ServerStream() : GrpcStream("", PayloadForm::kString), call_(&context_) {}

  grpc::GenericServerContext& context() { return context_; }
  grpc::GenericServerAsyncReaderWriter& call() { return call_; }
  using GrpcStream::Ready;
  void Cancel() override { context_.TryCancel(); }

 private:
  void StartRead(grpc::ByteBuffer* frame, void* tag) override { call_.Read(frame, tag); }
  void StartWrite(const grpc::ByteBuffer& frame, void* tag) override { call_.Write(frame, tag); }
  void StartEnd(const absl::Status& reason, void* tag) override {
    finish_called_ = true;
    call_.Finish(ToGrpc(reason), tag);
  }
  bool StartFinish(void* tag) override {
    if (std::exchange(finish_called_, true)) return false;
    call_.Finish(grpc::Status::OK, tag);
    return true;
  }
  absl::Status PeerReason() const override { return absl::UnavailableError("connection closed by the peer"); }

  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_;
  bool finish_called_ = false;
};

class ServerChannel final : public Channel {
 public:
  explicit ServerChannel(std::shared_ptr<ServerStream> stream)
      : stream_(std::move(stream)), peer_(stream_->context().peer()) {}
  ~ServerChannel() override {
    stream_->Detach();
    // Whoever closed it before has waited long enough.
    if (stream_->closed()) {
      if (!stream_->AwaitOver(absl::Now())) stream_->Cancel();
    } else {
      stream_->Close(absl::UnavailableError("the other end is gone"));
    }
  }
  void Start(ChannelHandler handler) override { stream_->Start(std::move(handler)); }
  absl::Status Send(Message message) override { return stream_->Send(std::move(message), false); }
  absl::Status SendLater(Message message) override { return stream_->Send(std::move(message), true); }
  void Flush() override { stream_->Flush(); }
  void Close(absl::Status reason) override { stream_->Close(std::move(reason)); }
  std::string peer() const override { return peer_; }

 private:
  const std::shared_ptr<ServerStream> stream_;
  const std::string peer_;
};

class GrpcServer final : public Server {
 public:
  explicit GrpcServer(AcceptHandler accept) : accept_(std::move(accept)) {}

  absl::Status Listen(const std::string& address, const Tls& tls) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(kMaxFrame);
    builder.AddListeningPort(address, ServerCredentials(tls), &port);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || (port == 0 && !absl::StartsWith(address, "unix:"))) {
      if (server_ != nullptr) server_->Shutdown();
      server_.reset();
      queue_->Shutdown();
      ServeQueue(*queue_);
      return absl::UnavailableError(absl::StrCat(
          "cannot listen on ", address,
          tls.empty() ? " (is the port in use?)" : " (is the port in use, are certificate and key a pair?)"));
    }
    const size_t colon = address.rfind(':');
    address_ = absl::StartsWith(address, "unix:") ? address : absl::StrCat(address.substr(0, colon), ":", port);
    AcceptNext();
    thread_ = std::thread([this] { ServeQueue(*queue_); });
    pthread_setname_np(thread_.native_handle(), "gw-net");
    return absl::OkStatus();
  }

  ~GrpcServer() override {
    if (server_ == nullptr) return;
    std::vector<std::weak_ptr<ServerStream>> streams;
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
      streams = streams_;
    }
    for (auto& weak : streams) {
      if (auto stream = weak.lock()) stream->Close(absl::UnavailableError("the server stops"));
    }
    server_->Shutdown(absl::ToChronoTime(absl::Now() + kPatience));
    for (auto& weak : streams) {
      if (auto stream = weak.lock()) stream->AwaitOver(absl::Now() + kCancelled);
    }
    queue_->Shutdown();  // no event may begin after this
    thread_.join();
  }

  std::string address() const override { return address_; }

 private:
  // One call to come.
  struct Acceptor final : GrpcTag {
    explicit Acceptor(GrpcServer& owner) : server(owner) {}
    GrpcServer& server;
    std::shared_ptr<ServerStream> stream = std::make_shared<ServerStream>();
    void Done(bool ok) override {
      std::unique_ptr<Acceptor> self(this);
      if (!ok || !server.Register(stream)) return;  // shutting down
      server.AcceptNext();
      const bool known = stream->context().method() == kMethod;
      stream->Ready();
      if (!known) {
        return stream->Close(absl::UnimplementedError(absl::StrCat("no method ", stream->context().method())));
      }
      server.accept_(std::make_unique<ServerChannel>(stream));
    }
  };
  // False when the server stops: nothing may be begun any more.
  bool Register(const std::shared_ptr<ServerStream>& stream) {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return false;
    std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
    streams_.push_back(stream);
    return true;
  }
  void AcceptNext() {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    auto* acceptor = new Acceptor(*this);  // owned by its event
    service_.RequestCall(&acceptor->stream->context(), &acceptor->stream->call(), queue_.get(), queue_.get(),
                         static_cast<GrpcTag*>(acceptor));
  }

  const AcceptHandler accept_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<ServerStream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Channel>> ConnectGrpc(const std::string& address, absl::Time deadline, const Tls& tls) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxFrame);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  auto channel = grpc::CreateCustomChannel(address, ChannelCredentials(tls), arguments);
  if (!channel->WaitForConnected(absl::ToChronoTime(deadline))) {
    return absl::UnavailableError(
        absl::StrCat("cannot reach ", address, tls.empty() ? "" : " (is it there, and do both believe each other?)"));
  }
  return std::unique_ptr<Channel>(std::make_unique<ClientChannel>(std::make_shared<ClientStream>(address, channel)));
}

absl::StatusOr<std::unique_ptr<Server>> ServeGrpc(const std::string& address, AcceptHandler accept, const Tls& tls) {
  auto server = std::make_unique<GrpcServer>(std::move(accept));
  if (absl::Status status = server->Listen(address, tls); !status.ok()) return status;
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace gangway::net
