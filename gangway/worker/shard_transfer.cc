#include "gangway/worker/shard_transfer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/worker/pieces.h"

namespace gangway::worker {
namespace {

constexpr size_t kPiece = 4 << 20;
constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = 2 << 20;
// Memory for so many bytes comes fresh from the system: to make and zero its pages takes about as long as to fill them.
constexpr size_t kFresh = 16 << 20;
// Beyond what any array has; keeps a malformed message from overflowing.
constexpr int kMaxDims = 64;

ShardBytes Allocate(size_t size) {
  const size_t alignment = size < kFresh ? kAlignment : kHugePage;
  ShardBytes bytes(std::aligned_alloc(alignment, (size / alignment + 1) * alignment), std::free);
  if (bytes != nullptr && size >= kFresh) (void)madvise(bytes.get(), size, MADV_HUGEPAGE);
  return bytes;
}

// Makes the pages ahead of who writes them, for as long as somebody wants the memory. Where the system does not know
// how (Linux before 5.14), they are made as ever.
void MakePages(const std::weak_ptr<void>& memory, size_t size) {
  for (size_t at = 0; at < size; at += kPiece) {
    const ShardBytes bytes = memory.lock();
    if (bytes == nullptr) return;
    if (madvise(static_cast<char*>(bytes.get()) + at, std::min(kPiece, size - at), MADV_POPULATE_WRITE) != 0) return;
  }
}

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

absl::StatusOr<ShardBytes> NewShardBytes(size_t size) {
  ShardBytes bytes = Allocate(size);
  if (bytes == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory for ", size, " bytes"));
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
  if (!memory.ok()) return done(memory.status());
  if (size >= kFresh) helper.Post([memory = std::weak_ptr<void>(*memory), size] { MakePages(memory, size); });
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
