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
    mailbox_.Note(label.subject);
    auto it = peers_.find(to);
    if (stopping_) {
      status = absl::CancelledError("the data plane stops");
    } else if (it == peers_.end()) {
      status = mailbox_.WhyUnknown(to);
    } else if (const absl::Status* why = mailbox_.WhyGone(to, label.subject)) {
      status = *why;
    } else {
      writer = Open(to, it->second);
      if (!eager) {
        frame.number = ++last_offer_;
        offers_[frame.number] = {to, data, size, std::exchange(done, nullptr)};
      }
    }
  }
  if (writer != nullptr) status = writer->Queue(frame, data);
  if (writer != nullptr && !status.ok()) {
    Outbox outbox;
    {
      absl::MutexLock lock(&mutex_);
      status = NotSent(to, label, *writer, status);
      if (auto offer = offers_.find(frame.number); offer != offers_.end()) {  // otherwise it ended with its peer
        done = std::move(offer->second.done);
        offers_.erase(offer);
      }
      outbox = TakeOutbox();
    }
    Deliver(std::move(outbox));
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

void GrpcFabric::Receive(PeerId from, const ParcelLabel& label, void* data, size_t size, Done done) {
  CountReceived(size);
  Wanted wanted{data, size, std::move(done)};
  Outbox outbox;
  {
    absl::MutexLock lock(&mutex_);
    auto early = mailbox_.Receive(from, label, wanted);
    if (!early.ok()) {
      outbox_.calls.emplace_back(std::move(wanted.done), early.status());
    } else if (early->has_value()) {
      Fill(label, std::move(wanted), **early);
    }
    outbox = TakeOutbox();
  }
  Deliver(std::move(outbox));
}

void GrpcFabric::Abandon(uint64_t subject, const absl::Status& why) {
  Outbox outbox;
  {
    absl::MutexLock lock(&mutex_);
    End(mailbox_.Abandon(subject, why), why);
    outbox = TakeOutbox();
  }
  Deliver(std::move(outbox));
}

void GrpcFabric::End(Box::Ended ended, const absl::Status& why) {
  for (Done& done : ended.receives) outbox_.calls.emplace_back(std::move(done), why);
  for (const Held& held : ended.parcels) Dispose(held);
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
    Outbox outbox;
    {
      absl::MutexLock lock(&mutex_);
      const Hearing hearing = Hear(reader);
      if (hearing == Hearing::kWaiting) return ParcelReader::Next::kWait;
      if (hearing == Hearing::kDropped) return ParcelReader::Next::kRead;
      absl::StatusOr<ParcelFrame> frame = frames.Next();
      const absl::Status status = frame.ok() ? On(reader->from(), *frame, frames) : frame.status();
      if (!status.ok()) Break(reader->from(), absl::Status(status.code(), absl::StrCat("it sent ", status.message())));
      outbox = TakeOutbox();
    }
    Deliver(std::move(outbox));
  }
  return ParcelReader::Next::kRead;
}

absl::Status GrpcFabric::On(PeerId from, const ParcelFrame& frame, ParcelFrames& frames) {
  switch (frame.kind) {
    case FrameKind::kParcel: {
      Held held{.from = from, .bytes = std::string(frame.size, '\0'), .size = frame.size};
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

void GrpcFabric::OnParcel(const ParcelLabel& label, Held held) {
  bool dropped = false;
  std::optional<Wanted> wanted = mailbox_.Arrive(held.from, label, held, &dropped);
  if (dropped) Dispose(held);
  if (wanted.has_value()) Fill(label, *std::move(wanted), held);
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
  outbox_.calls.emplace_back(std::move(taking.wanted.done), absl::OkStatus());
  takings_.erase(it);
  return absl::OkStatus();
}

void GrpcFabric::OnAnswer(PeerId from, const ParcelFrame& frame) {
  auto it = offers_.find(frame.number);
  if (it == offers_.end() || it->second.peer != from) return;
  Offer offer = std::move(it->second);
  offers_.erase(it);
  if (frame.kind == FrameKind::kRefuse) {
    outbox_.calls.emplace_back(std::move(offer.done), absl::OkStatus());
    return;
  }
  outbox_.gifts.emplace_back(Open(from, peers_.at(from)), Gift{frame.number, static_cast<const char*>(offer.data),
                                                               offer.size, std::move(offer.done)});
}

void GrpcFabric::Fill(const ParcelLabel& label, Wanted wanted, const Held& held) {
  if (held.size != wanted.size) {
    Dispose(held);
    outbox_.calls.emplace_back(std::move(wanted.done),
                               absl::InvalidArgumentError(absl::StrCat("parcel ", label.ToString(), " has ", held.size,
                                                                       " bytes, not ", wanted.size)));
    return;
  }
  if (held.offered) {
    takings_[{held.from, held.number}] = {std::move(wanted), 0};
    return Answer(held.from, FrameKind::kTake, held.number);
  }
  if (held.size > 0) std::memcpy(wanted.data, held.bytes.data(), held.size);
  outbox_.calls.emplace_back(std::move(wanted.done), absl::OkStatus());
}

void GrpcFabric::Dispose(const Held& held) {
  if (held.offered) Answer(held.from, FrameKind::kRefuse, held.number);
}

void GrpcFabric::Answer(PeerId to, FrameKind kind, uint64_t number) {
  auto it = peers_.find(to);
  if (it == peers_.end()) return;  // its offers ended with it
  outbox_.notes.emplace_back(Open(to, it->second), ParcelFrame{.kind = kind, .number = number});
}

}  // namespace gangway::net
