#include "gangway/worker/shard_transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/worker/pieces.h"

namespace gangway::worker {
namespace {

constexpr size_t kPiece = 4 << 20;
// Beyond what any array has; keeps a malformed message from overflowing.
constexpr int kMaxDims = 64;

// An empty shard is one empty piece: its arrival is news too.
size_t PieceCount(size_t size) { return std::max<size_t>(1, (size + kPiece - 1) / kPiece); }

net::ParcelLabel LabelOf(const ShardRoute& route, size_t piece) {
  return {route.task.value(), static_cast<uint64_t>(route.position), 0, piece};
}

}  // namespace

absl::StatusOr<uint64_t> DenseBytes(DType dtype, const net::Dims& dims) {
  if (!IsElement(dtype)) return absl::InvalidArgumentError("no element type");
  if (dims.size() > kMaxDims) return absl::InvalidArgumentError("too many dimensions");
  uint64_t bytes = ByteWidth(dtype);
  for (int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes)) {
      return absl::InvalidArgumentError("dimensions out of range");
    }
  }
  return bytes;
}

void SendShard(net::Fabric& fabric, const ShardRoute& route, std::shared_ptr<const void> owner,
               absl::Span<const std::byte> bytes, net::Fabric::Done done) {
  auto pieces = std::make_shared<Pieces>(PieceCount(bytes.size()), std::move(done));
  for (size_t i = 0; i < PieceCount(bytes.size()); ++i) {
    const auto piece = bytes.subspan(i * kPiece, kPiece);
    fabric.Send(route.peer, LabelOf(route, i), piece.data(), piece.size(),
                [pieces, owner](const absl::Status& status) { pieces->Ended(status); });
  }
}

void ReceiveShard(net::Fabric& fabric, const ShardRoute& route, size_t size, Executor& helper,
                  std::function<void(absl::StatusOr<ShardBytes>)> done) {
  auto memory = NewShardBytes(size);
  if (!memory.ok()) {
    fabric.Abandon(route.task.value(), memory.status());  // its sender must not wait for somebody to take it
    return done(memory.status());
  }
  PrepareShardBytes(*memory, size, helper);
  auto pieces =
      std::make_shared<Pieces>(PieceCount(size), [bytes = *memory, done = std::move(done)](const absl::Status& status) {
        status.ok() ? done(bytes) : done(status);
      });
  for (size_t i = 0; i < PieceCount(size); ++i) {
    const size_t offset = i * kPiece;
    fabric.Receive(route.peer, LabelOf(route, i), static_cast<char*>(memory->get()) + offset,
                   std::min(kPiece, size - offset), [pieces](const absl::Status& status) { pieces->Ended(status); });
  }
}

}  // namespace gangway::worker
