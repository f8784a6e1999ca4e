// Parcels that are sent and received.
#include "gangway/net/grpc/parcel_end.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway::net {

void GrpcFabric::Send(PeerId to, const ParcelLabel& label, const void* data, size_t size, Done done) {
  CountSent(size);
  const bool eager = size <= kMostEagerBytes;
  ParcelFrame frame{.kind = eager ? FrameKind::kParcel : FrameKind::kOffer, .label = label, .size = size};
  std::shared_ptr<ParcelWriter> writer;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    auto it = peers_.find(to);
    status = MaySend(to, label.subject, it != peers_.end());
    if (status.ok()) {
      writer = Open(to, it->second);
      if (!eager) {
        frame.number = ++last_offer_;
        offers_[frame.number] = {to, data, size, std::exchange(done, nullptr)};
      }
    }
  }
  if (writer != nullptr) status = writer->Queue(frame, data);
  if (writer != nullptr && !status.ok()) {
    Change([&] {
      status = NotSent(to, label, *writer, status);
      if (auto offer = offers_.find(frame.number); offer != offers_.end()) {  // otherwise it ended with its peer
        done = std::move(offer->second.done);
        offers_.erase(offer);
      }
    });
  }
  if (done != nullptr) done(status);
}

absl::Status GrpcFabric::NotSent(PeerId to, const ParcelLabel& label, const ParcelWriter& writer,
                                 const absl::Status& status) {
  auto it = peers_.find(to);
  if (it == peers_.end()) return mailbox_.WhyUnknown(to);
  if (absl::IsUnavailable(status) && it->second.writer.get() == &writer) Break(to, status);
  if (const absl::Status* why = mailbox_.WhyGone(to, label.subject)) return *why;
  return Annotate(status, absl::StrCat("sending to worker ", it->second.name));
}

bool GrpcFabric::Knows(const ParcelReader& reader) const {
  auto it = peers_.find(reader.from());
  return it != peers_.end() && it->second.life == reader.life();
}

GrpcFabric::Hearing GrpcFabric::Hear(const std::shared_ptr<ParcelReader>& reader) {
  auto it = readers_.find(reader);
  if (stopping_ || it == readers_.end()) return Hearing::kDropped;
  if (it->second == Hearing::kNew) it->second = Knows(*reader) ? Hearing::kHeard : Hearing::kWaiting;
  return it->second;
}

ParcelReader::Next GrpcFabric::OnMessage(const std::shared_ptr<ParcelReader>& reader, const grpc::ByteBuffer& message) {
  ParcelFrames frames(message);
  while (!frames.AtEnd()) {
    Hearing hearing = Hearing::kDropped;
    Change([&] {
      hearing = Hear(reader);
      if (hearing != Hearing::kHeard) return;
      absl::StatusOr<ParcelFrame> frame = frames.Next();
      const absl::Status status = frame.ok() ? On(reader->from(), *frame, frames) : frame.status();
      if (!status.ok()) Break(reader->from(), absl::Status(status.code(), absl::StrCat("it sent ", status.message())));
    });
    if (hearing == Hearing::kWaiting) return ParcelReader::Next::kWait;
    if (hearing == Hearing::kDropped) return ParcelReader::Next::kRead;
  }
  return ParcelReader::Next::kRead;
}

absl::Status GrpcFabric::On(PeerId from, const ParcelFrame& frame, ParcelFrames& frames) {
  switch (frame.kind) {
    case FrameKind::kParcel: {
      HeldParcel held{.from = from, .bytes = std::string(frame.size, '\0'), .size = frame.size};
      frames.CopyTo(held.bytes.data(), held.bytes.size());
      OnParcel(frame.label, std::move(held));
      return absl::OkStatus();
    }
    case FrameKind::kOffer:
      OnParcel(frame.label, {.from = from, .offered = true, .number = frame.number, .size = frame.size});
      return absl::OkStatus();
    case FrameKind::kTake:
    case FrameKind::kRefuse:
      OnAnswer(from, frame);
      return absl::OkStatus();
    case FrameKind::kPiece:
      return OnPiece(from, frame, frames);
  }
  return absl::InternalError("a frame of no kind");
}

void GrpcFabric::OnParcel(const ParcelLabel& label, HeldParcel held) {
  bool dropped = false;
  std::optional<Wanted> wanted = mailbox_.Arrive(held.from, label, held, &dropped);
  if (dropped) Dispose(held);
  if (wanted.has_value()) Fill(held.from, label, *std::move(wanted), held);
}

absl::Status GrpcFabric::OnPiece(PeerId from, const ParcelFrame& frame, ParcelFrames& frames) {
  auto it = takings_.find({from, frame.number});
  if (it == takings_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("a piece of ", frame.number, ", which nobody took"));
  }
  Taking& taking = it->second;
  if (frame.size > taking.wanted.size - taking.got) {
    return absl::InvalidArgumentError(absl::StrCat("more than the ", taking.wanted.size, " bytes that it offered"));
  }
  frames.CopyTo(static_cast<char*>(taking.wanted.data) + taking.got, frame.size);
  taking.got += frame.size;
  if (taking.got < taking.wanted.size) return absl::OkStatus();
  Call(std::move(taking.wanted.done), absl::OkStatus());
  takings_.erase(it);
  return absl::OkStatus();
}

void GrpcFabric::OnAnswer(PeerId from, const ParcelFrame& frame) {
  auto it = offers_.find(frame.number);
  if (it == offers_.end() || it->second.peer != from) return;
  Offer offer = std::move(it->second);
  offers_.erase(it);
  if (frame.kind == FrameKind::kRefuse) {
    Call(std::move(offer.done), absl::OkStatus());
    return;
  }
  outbox_.gifts.emplace_back(Open(from, peers_.at(from)), Gift{frame.number, static_cast<const char*>(offer.data),
                                                               offer.size, std::move(offer.done)});
}

void GrpcFabric::Fill(PeerId from, const ParcelLabel& label, Wanted wanted, const HeldParcel& held) {
  if (held.size != wanted.size) {
    Dispose(held);
    Call(std::move(wanted.done), absl::InvalidArgumentError(absl::StrCat("parcel ", label.ToString(), " has ",
                                                                         held.size, " bytes, not ", wanted.size)));
    return;
  }
  if (held.offered) {
    takings_[{held.from, held.number}] = {std::move(wanted), 0};
    return Answer(held.from, FrameKind::kTake, held.number);
  }
  if (held.size > 0) std::memcpy(wanted.data, held.bytes.data(), held.size);
  Call(std::move(wanted.done), absl::OkStatus());
}

void GrpcFabric::Dispose(const HeldParcel& held) {
  if (held.offered) Answer(held.from, FrameKind::kRefuse, held.number);
}

void GrpcFabric::Answer(PeerId to, FrameKind kind, uint64_t number) {
  auto it = peers_.find(to);
  if (it == peers_.end()) return;  // its offers ended with it
  outbox_.notes.emplace_back(Open(to, it->second), ParcelFrame{.kind = kind, .number = number});
}

}  // namespace gangway::net
