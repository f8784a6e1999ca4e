#include "gangway/net/grpc/parcel_frame.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gangway::net {

ParcelFrames::ParcelFrames(const grpc::ByteBuffer& message) {
  // What cannot be unpacked has no frames.
  if (message.Dump(&slices_).ok()) left_ = message.Length();
}

absl::StatusOr<ParcelFrame> ParcelFrames::Next() {
  ParcelFrame frame;
  if (left_ < sizeof frame) return absl::InvalidArgumentError(absl::StrCat("half a header, of ", left_, " bytes"));
  CopyTo(static_cast<void*>(&frame), sizeof frame);
  if (frame.kind < FrameKind::kParcel || frame.kind > FrameKind::kPiece) {
    return absl::InvalidArgumentError(absl::StrCat("a frame of kind ", static_cast<uint32_t>(frame.kind)));
  }
  if (frame.kind == FrameKind::kParcel && frame.size > kMostEagerBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a parcel of ", frame.size, " bytes that was not offered"));
  }
  if (frame.has_bytes() && frame.size > left_) {
    return absl::InvalidArgumentError(absl::StrCat(left_, " of ", frame.size, " bytes"));
  }
  return frame;
}

void ParcelFrames::CopyTo(void* to, size_t size) {
  auto* out = static_cast<char*>(to);
  while (size > 0) {
    const grpc::Slice& slice = slices_[slice_];
    const size_t some = std::min(size, slice.size() - offset_);
    std::memcpy(out, slice.begin() + offset_, some);
    out += some;
    size -= some;
    Skip(some);
  }
}

void ParcelFrames::Skip(size_t size) {
  left_ -= size;
  offset_ += size;
  while (slice_ < slices_.size() && offset_ >= slices_[slice_].size()) offset_ -= slices_[slice_++].size();
}

}  // namespace gangway::net
