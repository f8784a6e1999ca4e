#include "gangway/net/grpc/parcel_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/net/grpc/grpc_stream.h"

namespace gangway::net {
namespace {

constexpr size_t kMostQueuedBytes = size_t{1} << 30;  // of small parcels for a peer that does not read
constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kWriteBytes = 1 << 20;  // of a write, about

}  // namespace

void ParcelWriter::Start(const std::shared_ptr<grpc::Channel>& channel, const Metadata& metadata,
                         grpc::CompletionQueue* queue) {
  for (const auto& [key, value] : metadata) context_.AddMetadata(key, value);
  channel_ = channel;
  grpc::GenericStub stub(channel);
  absl::MutexLock lock(&call_mutex_);
  call_ = stub.PrepareCall(&context_, kParcelMethod, queue);
  call_->StartCall(Tag(&ParcelWriter::OnStarted));
}

absl::Status ParcelWriter::Queue(const ParcelFrame& frame, const void* data) {
  {
    absl::MutexLock lock(&mutex_);
    if (over_) return why_;
    const size_t bytes = frame.has_bytes() ? frame.size : 0;
    if (queued_ + bytes > kMostQueuedBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("the peer is ", queued_ >> 20, " MiB behind"));
    }
    if (frames_.empty() || frames_.back().size() > kWriteBytes) frames_.emplace_back();
    frames_.back().append(reinterpret_cast<const char*>(&frame), sizeof frame);
    if (bytes > 0) frames_.back().append(static_cast<const char*>(data), bytes);
    queued_ += sizeof frame + bytes;
  }
  WriteSome();
  return absl::OkStatus();
}

void ParcelWriter::Give(Gift gift) {
  absl::Status over;
  {
    absl::MutexLock lock(&mutex_);
    if (over_) {
      over = why_;
    } else {
      gifts_.push_back(std::exchange(gift, {}));
    }
  }
  if (!over.ok()) return gift.done(over);
  WriteSome();
}

std::vector<grpc::Slice> ParcelWriter::TakeSome(std::vector<Fabric::Done>& copied) {
  std::vector<grpc::Slice> slices;
  size_t bytes = 0;
  while (!frames_.empty() && bytes < kWriteBytes) {
    bytes += frames_.front().size();
    slices.emplace_back(frames_.front());
    frames_.pop_front();
  }
  queued_ -= bytes;
  while (!gifts_.empty() && bytes < kWriteBytes) {
    Gift& gift = gifts_.front();
    const size_t some = std::min(kPieceBytes, gift.size - gift.sent);
    const ParcelFrame header{.kind = FrameKind::kPiece, .number = gift.number, .size = some};
    slices.emplace_back(&header, sizeof header);
    slices.emplace_back(gift.data + gift.sent, some);
    bytes += some;
    gift.sent += some;
    if (gift.sent < gift.size) continue;
    copied.push_back(std::move(gift.done));
    gifts_.pop_front();
  }
  return slices;
}

void ParcelWriter::WriteSome() {
  std::vector<Fabric::Done> copied;
  grpc::ByteBuffer written;
  {
    absl::MutexLock lock(&mutex_);
    if (!up_ || writing_ || over_) return;
    std::vector<grpc::Slice> slices = TakeSome(copied);
    if (slices.empty()) return;
    writing_ = true;
    written = grpc::ByteBuffer(slices.data(), slices.size());
  }
  {
    // It may encrypt and write at once, which nobody who queues has to wait for.
    absl::MutexLock lock(&call_mutex_);
    call_->Write(written, Tag(&ParcelWriter::OnWritten));
  }
  for (const Fabric::Done& done : copied) done(absl::OkStatus());
}

void ParcelWriter::OnStarted(bool) {
  {
    absl::MutexLock lock(&mutex_);
    up_ = true;
  }
  {
    absl::MutexLock lock(&call_mutex_);
    call_->Read(&answer_, Tag(&ParcelWriter::OnRead));  // fails where the call did not come up, too
  }
  WriteSome();
}

void ParcelWriter::OnWritten(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
  }
  if (!ok) EndWith(absl::UnavailableError("the peer is gone"));
  WriteSome();
  MaybeEnd();
}

void ParcelWriter::OnRead(bool ok) {
  if (ok) {
    Close(absl::InvalidArgumentError("the peer answers where nothing is to be said"));
    absl::MutexLock lock(&call_mutex_);
    return call_->Read(&answer_, Tag(&ParcelWriter::OnRead));
  }
  EndWith(absl::UnavailableError("the peer is gone"));
  absl::MutexLock lock(&call_mutex_);
  call_->Finish(&status_, Tag(&ParcelWriter::OnFinished));
}

void ParcelWriter::OnFinished(bool) {
  {
    absl::MutexLock lock(&mutex_);
    finished_ = true;
  }
  MaybeEnd();
}

void ParcelWriter::MaybeEnd() {
  {
    absl::MutexLock lock(&mutex_);
    if (!finished_ || writing_) return;
  }
  ended_(this, status_.ok() ? absl::UnavailableError("the peer ended the connection") : FromGrpc(status_));
}

void ParcelWriter::Close(const absl::Status& why) {
  EndWith(why);
  context_.TryCancel();
}

void ParcelWriter::EndWith(const absl::Status& why) {
  std::deque<Gift> gifts;
  {
    absl::MutexLock lock(&mutex_);
    if (over_) return;
    over_ = true;
    why_ = why;
    frames_.clear();
    gifts = std::move(gifts_);
  }
  for (const Gift& gift : gifts) gift.done(why);
}

}  // namespace gangway::net
