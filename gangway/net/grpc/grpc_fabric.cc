#include "gangway/net/grpc/grpc_fabric.h"

#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/net/grpc/credentials.h"
#include "gangway/net/grpc/parcel_end.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server_builder.h"

namespace gangway::net {
namespace {

constexpr int kMostMessageBytes = 4 << 20;  // a write is smaller
constexpr int kKeepaliveMs = 20'000;        // a peer that answers nothing for so long is gone

// gRPC ends with its last user, which can take it ten seconds (a poller of its own sleeps that long): it never ends.
void KeepGrpc() { [[maybe_unused]] static const bool kept = (grpc_init(), true); }

std::string Secret() {
  std::random_device device;
  return absl::StrCat(absl::Hex(uint64_t{device()} << 32 | device(), absl::kZeroPad16),
                      absl::Hex(uint64_t{device()} << 32 | device(), absl::kZeroPad16));
}

std::string MetadataOf(const grpc::ServerContext& context, const char* key) {
  const auto& all = context.client_metadata();
  auto it = all.find(key);
  return it == all.end() ? "" : std::string(it->second.data(), it->second.size());
}

}  // namespace

// A call to come; its own owner.
struct GrpcFabric::Acceptor final : GrpcTag {
  explicit Acceptor(GrpcFabric& owner) : fabric(owner) {}
  void Done(bool ok) override {
    const std::unique_ptr<Acceptor> self(this);
    if (ok) fabric.Accept(std::move(reader));
  }
  GrpcFabric& fabric;
  std::shared_ptr<ParcelReader> reader = std::make_shared<ParcelReader>();
};

// Says why a call is refused; its own owner.
struct GrpcFabric::Refusal final : GrpcTag {
  explicit Refusal(std::shared_ptr<ParcelReader> reader) : reader(std::move(reader)) {}
  void Done(bool) override { delete this; }
  const std::shared_ptr<ParcelReader> reader;
};

void GrpcFabric::AcceptNext() {
  auto* acceptor = new Acceptor(*this);
  ParcelReader& reader = *acceptor->reader;
  service_.RequestCall(&reader.context(), &reader.call(), queue_.get(), queue_.get(), HandOver(acceptor));
}

void GrpcFabric::Accept(std::shared_ptr<ParcelReader> reader) {
  const grpc::GenericServerContext& context = reader->context();
  int32_t from = -1;
  const bool known = MetadataOf(context, kToKey) == life_ && absl::SimpleAtoi(MetadataOf(context, kFromKey), &from);
  const auto done = [this] {
    absl::MutexLock lock(&mutex_);
    CountStreams(-1);
  };
  reader->Introduce(
      PeerId(from), MetadataOf(context, kLifeKey),
      {.on_message = [this](const auto& reader, const auto& message) { return OnMessage(reader, message); },
       .on_end = [this](const auto& reader) { OnReaderEnded(reader); },
       .on_done = done});
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;  // the server ends the call
    AcceptNext();
    if (context.method() != kParcelMethod || !known) {
      auto* refusal = new Refusal(reader);
      return reader->call().Finish(grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "no worker of this cluster"),
                                   HandOver(refusal));
    }
    CountStreams(1);
    readers_[reader] = Hearing::kNew;
  }
  reader->Start();
}

absl::Status GrpcFabric::Start(const std::string& listen, const Tls& tls) {
  KeepGrpc();
  tls_ = tls;
  life_ = Secret();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveMs / 2);
  builder.SetMaxReceiveMessageSize(kMostMessageBytes);
  builder.AddListeningPort(listen, ServerCredentials(tls), &port);
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  thread_ = std::thread([this] { ServeQueue(*queue_); });
  pthread_setname_np(thread_.native_handle(), "gw-fabric");
  if (server_ == nullptr || port == 0) return absl::UnavailableError(absl::StrCat("cannot listen on ", listen));
  absl::MutexLock lock(&mutex_);
  AcceptNext();
  target_ = absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
  return absl::OkStatus();
}

GrpcFabric::~GrpcFabric() {
  Change([&] {
    stopping_ = true;
    const absl::Status gone = absl::CancelledError("the data plane stops");
    DropAll(gone);
    End(mailbox_.EndAll(), gone);
    for (const auto& [reader, hearing] : readers_) outbox_.end.push_back(reader);
  });
  if (server_ != nullptr) server_->Shutdown(absl::ToChronoTime(absl::Now()));
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&quiet_));
  }
  queue_->Shutdown();
  thread_.join();
}

std::string GrpcFabric::address() const {
  return absl::StrCat(target_, "\n", life_, "\n", FirstCertificate(tls_.certificate));
}

absl::StatusOr<GrpcFabric::Peer> GrpcFabric::Parsed(std::string name, std::string address) {
  const std::vector<std::string> parts = absl::StrSplit(address, '\n');
  if (parts.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", name, " has no address of the data plane"));
  }
  return Peer{std::move(name), std::move(address), parts[0], parts[1], parts[2], nullptr, nullptr};
}

void GrpcFabric::Connect(PeerId id, std::string name, std::string address) {
  Change([&] {
    if (auto it = peers_.find(id); it != peers_.end()) {
      if (it->second.address == address) return;
      Drop(id, absl::UnavailableError(absl::StrCat("worker ", it->second.name, " came back somewhere else")));
    }
    absl::StatusOr<Peer> peer = Parsed(std::move(name), std::move(address));
    if (peer.ok()) {
      peers_[id] = *std::move(peer);
      mailbox_.Connected(id);
    } else {
      Drop(id, peer.status());
    }
    for (auto& [reader, hearing] : readers_) {
      if (hearing != Hearing::kWaiting || reader->from() != id || !Knows(*reader)) continue;
      hearing = Hearing::kHeard;
      outbox_.go_on.push_back(reader);
    }
  });
}

const std::shared_ptr<ParcelWriter>& GrpcFabric::Open(PeerId id, Peer& peer) {
  if (peer.writer != nullptr) return peer.writer;
  if (peer.channel == nullptr) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    peer.channel = grpc::CreateCustomChannel(peer.target, PinnedCredentials(tls_, peer.certificate), arguments);
  }
  CountStreams(1);
  peer.writer = std::make_shared<ParcelWriter>(
      [this, id](const ParcelWriter* writer, const absl::Status& why) { OnWriterEnded(id, writer, why); });
  peer.writer->Start(peer.channel, {{kFromKey, absl::StrCat(self().value())}, {kLifeKey, life_}, {kToKey, peer.life}},
                     queue_.get());
  return peer.writer;
}

void GrpcFabric::OnWriterEnded(PeerId id, const ParcelWriter* writer, const absl::Status& why) {
  Change([&] {
    if (auto it = peers_.find(id); it != peers_.end() && it->second.writer.get() == writer) Break(id, why);
  });
  absl::MutexLock lock(&mutex_);
  CountStreams(-1);
}

void GrpcFabric::OnReaderEnded(const std::shared_ptr<ParcelReader>& reader) {
  Change([&] {
    auto it = readers_.find(reader);
    const bool heard = it != readers_.end() && it->second == Hearing::kHeard && Knows(*reader);
    if (it != readers_.end()) readers_.erase(it);
    if (heard) Break(reader->from(), absl::UnavailableError("it ended the connection"));
  });
}

std::vector<PeerId> GrpcFabric::Peers() const {
  std::vector<PeerId> peers;
  for (const auto& [id, peer] : peers_) peers.push_back(id);
  return peers;
}

void GrpcFabric::Drop(PeerId id, const absl::Status& why) {
  if (auto it = peers_.find(id); it != peers_.end()) {
    if (it->second.writer != nullptr) outbox_.close.emplace_back(std::move(it->second.writer), why);
    for (auto& [reader, hearing] : readers_) {
      // Its writer ends when the peer learns that it is disconnected, too.
      if (reader->from() == id && Knows(*reader)) hearing = Hearing::kDropped;
    }
    peers_.erase(it);
  }
  EndOperations(id, why);
  End(mailbox_.Disconnected(id, why), why);
}

void GrpcFabric::Break(PeerId id, const absl::Status& why) {
  Peer& peer = peers_.at(id);
  const absl::Status broke =
      absl::UnavailableError(absl::StrCat("the connection to worker ", peer.name, " broke: ", why.message()));
  if (peer.writer != nullptr) outbox_.close.emplace_back(std::move(peer.writer), broke);
  peer.channel = nullptr;  // it may not know yet that its connection is gone
  for (auto& [reader, hearing] : readers_) {
    if (reader->from() != id || hearing != Hearing::kHeard || !Knows(*reader)) continue;
    hearing = Hearing::kDropped;
    outbox_.end.push_back(reader);
  }
  EndOperations(id, broke);
  End(mailbox_.Broke(id, broke), broke);
}

void GrpcFabric::EndOperations(PeerId peer, const absl::Status& why) {
  absl::erase_if(offers_, [&](auto& entry) {
    if (entry.second.peer != peer) return false;
    Call(std::move(entry.second.done), why);
    return true;
  });
  absl::erase_if(takings_, [&](auto& entry) {
    if (entry.first.first != peer) return false;
    Call(std::move(entry.second.wanted.done), why);
    return true;
  });
}

void GrpcFabric::Deliver(ParcelOutbox outbox) {
  for (auto& [writer, why] : outbox.close) writer->Close(why);
  for (const auto& reader : outbox.end) reader->End();
  // When its peer does not hear it, the connection is over and the rest ends with that.
  for (const auto& [writer, frame] : outbox.notes) writer->Queue(frame).IgnoreError();
  for (auto& [writer, gift] : outbox.gifts) writer->Give(std::move(gift));
  CallAll(std::move(outbox.calls));
  for (const auto& reader : outbox.go_on) reader->Continue();
}

absl::StatusOr<std::shared_ptr<Fabric>> MakeGrpcFabric(const std::string& listen, const Tls& tls) {
  // What ends on a thread of the fabric's may hold the last reference to it.
  const auto end = [](GrpcFabric* fabric) {
    if (!fabric->IsOwnThread()) return delete fabric;
    std::thread([fabric] { delete fabric; }).detach();
  };
  std::shared_ptr<GrpcFabric> fabric(new GrpcFabric, end);
  GW_RETURN_IF_ERROR(fabric->Start(listen, tls));
  return std::shared_ptr<Fabric>(std::move(fabric));
}

}  // namespace gangway::net
