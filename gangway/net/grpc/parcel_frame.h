// What a stream of parcels carries: frames one behind the other, each a header and the bytes it announces. Internal to
// net/grpc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/net/fabric.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace gangway::net {

// Up to here a parcel is sent at once. A larger one is offered, and sent when somebody wants it: early parcels take
// little memory at their receiver.
inline constexpr size_t kMostEagerBytes = 64 << 10;

enum class FrameKind : uint32_t {
  kParcel = 1,  // the bytes follow
  kOffer,       // there are `size` bytes to be had
  kTake,        // the offer is wanted
  kRefuse,      // it is not
  kPiece,       // the next bytes of an offer that was taken
};

// As it is on the wire: both ends run on machines of one byte order.
struct ParcelFrame {
  FrameKind kind = FrameKind::kParcel;
  uint32_t unused = 0;
  ParcelLabel label = {};  // of parcels and offers
  uint64_t number = 0;     // of the offer, its maker's; all but parcels
  uint64_t size = 0;       // of the whole parcel, or of the piece

  bool has_bytes() const { return kind == FrameKind::kParcel || kind == FrameKind::kPiece; }
  friend bool operator==(const ParcelFrame&, const ParcelFrame&) = default;
};
static_assert(sizeof(ParcelFrame) == 56);

// Takes a message of the stream apart.
class ParcelFrames {
 public:
  explicit ParcelFrames(const grpc::ByteBuffer& message);

  bool AtEnd() const { return left_ == 0; }
  // The next header; its bytes are there and come next. INVALID_ARGUMENT for what no fabric of ours writes.
  absl::StatusOr<ParcelFrame> Next();
  // The next bytes of the frame at hand.
  void CopyTo(void* to, size_t size);
  void Skip(size_t size);

 private:
  std::vector<grpc::Slice> slices_;
  size_t slice_ = 0, offset_ = 0;  // where the next byte is
  size_t left_ = 0;                // bytes from there
};

}  // namespace gangway::net
