#include "gangway/net/grpc/grpc_stream.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gangway::net {
namespace {

// Bytes that may wait for a peer that does not read. Payloads are shared, so this is a bound on what a stuck peer keeps
// alive rather than on copies.
constexpr size_t kMaxQueuedBytes = size_t{8} << 30;
constexpr size_t kMessageOverhead = 128;

std::atomic<uint64_t> handed_over = 0;  // tags

size_t QueuedSize(const Message& message) {
  size_t size = kMessageOverhead;
  if (auto* make = std::get_if<MakeBuffer>(&message)) {
    for (const auto& piece : make->pieces) size += piece.bytes.size();
  } else if (auto* fetched = std::get_if<Fetched>(&message)) {
    size += fetched->bytes.size();
  } else if (auto* load = std::get_if<LoadProgram>(&message)) {
    size += load->executable.size();
  }
  return size;
}

// Of a program's name and those of its devices: a client's text must not make a frame that the peer does not take.
constexpr size_t kMostNameBytes = 16 << 20;

absl::Status CheckNames(const Message& message) {
  const auto* load = std::get_if<LoadProgram>(&message);
  if (load == nullptr) return absl::OkStatus();
  size_t bytes = load->name.size();
  for (const std::string& participant : load->participants) bytes += participant.size();
  if (bytes <= kMostNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a program with ", bytes, " bytes of names"));
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

void* HandOver(GrpcTag* tag) {
  handed_over.fetch_add(1, std::memory_order_release);
  return tag;
}

void ServeQueue(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
    handed_over.load(std::memory_order_acquire);
    static_cast<GrpcTag*>(tag)->Done(ok);
  }
}

void GrpcStream::Event::Done(bool ok) {
  std::shared_ptr<GrpcStream> held;
  void (GrpcStream::*handle)(bool) = nullptr;
  {
    absl::MutexLock lock(&stream.mutex_);
    held = std::move(self);
    handle = method;
  }
  ((*held).*handle)(ok);
}

void* GrpcStream::Begin(Event& event, void (GrpcStream::*method)(bool)) {
  event.method = method;
  event.self = shared_from_this();
  return static_cast<GrpcTag*>(&event);
}

void GrpcStream::Ready() {
  absl::MutexLock lock(&mutex_);
  up_ = true;
  if (started_ && !reading_) ReadNext();
  WriteNext();
}

void GrpcStream::Fail(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (!reason_.has_value()) reason_ = status;
    peer_ended_ = finished_ = true;
  }
  MaybeOver();
}

void GrpcStream::Start(ChannelHandler handler) {
  {
    absl::MutexLock handler_lock(&handler_mutex_);
    handler_ = std::move(handler);
    absl::MutexLock lock(&mutex_);
    started_ = true;
    if (!over_) {
      if (up_ && !peer_ended_) ReadNext();
      return;
    }
  }
  absl::MutexLock handler_lock(&handler_mutex_);
  absl::Status why;
  {
    absl::MutexLock lock(&mutex_);
    why = reason_.has_value() ? *reason_ : PeerReason();
  }
  if (handler_.has_value()) handler_->on_close(why);
}

absl::Status GrpcStream::Send(Message message, bool may_wait) {
  if (absl::Status names = CheckNames(message); !names.ok()) return names;
  absl::MutexLock lock(&mutex_);
  if (reason_.has_value() || peer_ended_) return absl::UnavailableError(absl::StrCat(peer_, ": connection is closed"));
  if (queued_bytes_ > kMaxQueuedBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(peer_, " is ", queued_bytes_ >> 20, " MiB behind"));
  }
  queued_bytes_ += QueuedSize(message);
  pending_.push_back(std::move(message));
  if (!may_wait) WriteNext();
  return absl::OkStatus();
}

void GrpcStream::Flush() {
  absl::MutexLock lock(&mutex_);
  WriteNext();
}

bool GrpcStream::closed() const {
  absl::MutexLock lock(&mutex_);
  return reason_.has_value() || peer_ended_;
}

void GrpcStream::Close(absl::Status reason) {
  absl::MutexLock lock(&mutex_);
  if (reason_.has_value() || peer_ended_) return;
  reason_ = reason.ok() ? absl::UnavailableError("closed") : std::move(reason);
  WriteNext();  // or when the call stands
}

void GrpcStream::Detach() {
  absl::MutexLock lock(&handler_mutex_);
  handler_.reset();
}

bool GrpcStream::AwaitOver(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithDeadline(absl::Condition(&over_), deadline);
}

void GrpcStream::WriteNext() {
  if (!up_ || writing_ || ended_ || peer_ended_) return;
  if (frames_.empty() && !pending_.empty()) {
    frames_ = WriteFrames(pending_);
    pending_.clear();
  }
  if (!frames_.empty()) {
    writing_ = true;
    grpc::ByteBuffer frame = std::move(frames_.front());
    frames_.pop_front();
    queued_bytes_ -= std::min(queued_bytes_, frame.Length());
    if (frames_.empty()) queued_bytes_ = 0;
    StartWrite(frame, Begin(write_event_, &GrpcStream::OnWritten));
    return;
  }
  // All is written: the own Close takes effect.
  if (!reason_.has_value()) return;
  ended_ = ending_ = true;
  StartEnd(*reason_, Begin(end_event_, &GrpcStream::OnEnded));
}

void GrpcStream::ReadNext() {
  reading_ = true;
  StartRead(&read_frame_, Begin(read_event_, &GrpcStream::OnRead));
}

void GrpcStream::FinishNext() {
  if (finishing_ || finished_ || reading_ || !up_) return;
  if (StartFinish(Begin(finish_event_, &GrpcStream::OnFinished))) {
    finishing_ = true;
  } else {
    finish_event_.self.reset();
    finished_ = true;
  }
}

void GrpcStream::OnRead(bool ok) {
  if (!ok) {
    {
      absl::MutexLock lock(&mutex_);
      reading_ = false;
      peer_ended_ = true;
      pending_.clear();
      frames_.clear();
      FinishNext();
    }
    return MaybeOver();
  }
  auto messages = reader_.Read(read_frame_);
  read_frame_.Clear();
  if (!messages.ok()) {
    {
      absl::MutexLock lock(&mutex_);
      reading_ = false;
      if (!reason_.has_value()) reason_ = messages.status();
    }
    Cancel();
    absl::MutexLock lock(&mutex_);
    ReadNext();  // fails when the cancellation is through
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    ReadNext();
  }
  if (messages->empty()) return;
  absl::MutexLock lock(&handler_mutex_);
  if (handler_.has_value()) handler_->on_messages(*std::move(messages));
}

void GrpcStream::OnWritten(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (ok) {
      WriteNext();
    } else {
      peer_ended_ = true;
      pending_.clear();
      frames_.clear();
      FinishNext();  // when nobody reads
    }
  }
  MaybeOver();
}

void GrpcStream::OnEnded(bool) {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = false;
    FinishNext();  // when nobody reads
  }
  MaybeOver();
}

void GrpcStream::OnFinished(bool) {
  {
    absl::MutexLock lock(&mutex_);
    finishing_ = false;
    finished_ = true;
  }
  MaybeOver();
}

void GrpcStream::MaybeOver() {
  absl::Status why;
  {
    absl::MutexLock lock(&mutex_);
    if (over_ || !finished_ || reading_ || writing_ || ending_ || finishing_) return;
    why = reason_.has_value() ? *reason_ : PeerReason();
  }
  {
    absl::MutexLock handler_lock(&handler_mutex_);
    if (handler_.has_value()) handler_->on_close(why);
    absl::MutexLock lock(&mutex_);
    over_ = true;
  }
}

}  // namespace gangway::net
