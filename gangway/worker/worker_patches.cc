// Shards put together from boxes of others, of this worker and of others.
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/worker/box.h"
#include "gangway/worker/pieces.h"
#include "gangway/worker/shard_transfer.h"
#include "gangway/worker/worker.h"

namespace gangway::worker {
namespace {

const std::byte* BytesOf(const net::Payload& payload) { return reinterpret_cast<const std::byte*>(payload.data()); }

// OK when a box of elements `dtype` can be taken from the shard.
absl::Status CheckSource(const device::ArrayType& shard, DType dtype, const net::Dims& start, const net::Dims& extent) {
  if (shard.dtype != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("a box of ", DTypeName(dtype), " is taken from a shard of ", DTypeName(shard.dtype)));
  }
  return CheckBox(shard.dims, start, extent);
}

// The box that is sent, dense.
absl::StatusOr<net::Payload> Packed(const device::ArrayType& shard, const net::Payload& bytes, DType dtype,
                                    const net::PatchBuffer::Send& send) {
  GW_RETURN_IF_ERROR(CheckSource(shard, dtype, send.start, send.extent));
  GW_ASSIGN_OR_RETURN(const uint64_t size, DenseBytes(dtype, send.extent));
  GW_ASSIGN_OR_RETURN(const ShardBytes packed, NewShardBytes(size));
  const net::Dims origin(send.extent.size(), 0);
  CopyBox(BytesOf(bytes), {shard.dims, send.start}, static_cast<std::byte*>(packed.get()), {send.extent, origin},
          send.extent, ByteWidth(dtype));
  return net::Payload(packed, packed.get(), size);
}

}  // namespace

// One shard in the making. Any thread fills it; boxes do not overlap.
class Worker::Patch {
 public:
  // `whole` is called once, on any thread, when the last box is there or has failed.
  Patch(net::Dims dims, DType dtype, int boxes, std::function<void(absl::StatusOr<ShardBytes>)> whole)
      : dims_(std::move(dims)),
        dtype_(dtype),
        boxes_(boxes + 1, [this, whole = std::move(whole)](const absl::Status& status) {
          status.ok() ? whole(bytes_) : whole(status);
        }) {}

  // OK when there is memory for it. After the boxes are known, `covered` bytes of them, and before any is filled. What
  // they leave out is zero: the memory may have been somebody else's.
  absl::Status Allocate(uint64_t covered) {
    GW_ASSIGN_OR_RETURN(const uint64_t size, DenseBytes(dtype_, dims_));
    GW_ASSIGN_OR_RETURN(bytes_, NewShardBytes(size));
    if (covered != size) std::memset(bytes_.get(), 0, size);
    return absl::OkStatus();
  }

  void Fill(const std::byte* from, BoxPlace source, const net::Dims& at, const net::Dims& extent) {
    CopyBox(from, source, static_cast<std::byte*>(bytes_.get()), {dims_, at}, extent, ByteWidth(dtype_));
    Ended(absl::OkStatus());
  }

  // A box is over, or the last word that all are under way.
  void Ended(const absl::Status& status) { boxes_.Ended(status); }

  const net::Dims& dims() const { return dims_; }
  DType dtype() const { return dtype_; }

 private:
  const net::Dims dims_;
  const DType dtype_;
  ShardBytes bytes_;
  Pieces boxes_;
};

void Worker::On(net::PatchBuffer message) {
  auto task = ledger_.Begin(message.task, static_cast<int>(message.shards.size() + message.sends.size()),
                            /*report=*/false);
  if (!message.shards.empty()) (void)store_.Create(message.buffer);
  std::vector<std::shared_ptr<Patch>> patches;
  std::vector<Boxes> boxes(message.shards.size());
  auto count = [&](int shard, const net::Dims& extent) {
    if (shard < 0 || shard >= static_cast<int>(boxes.size())) return;
    ++boxes[shard].count;
    boxes[shard].bytes += DenseBytes(message.dtype, extent).value_or(0);
  };
  for (const auto& piece : message.pieces) count(piece.shard, piece.extent);
  for (const auto& receive : message.receives) {
    for (const auto& target : receive.targets) count(target.shard, receive.extent);
  }
  for (size_t i = 0; i < message.shards.size(); ++i) {
    patches.push_back(NewPatch(task, message.buffer, message.dtype, message.shards[i], boxes[i]));
  }
  auto patch_of = [&](int shard) -> std::shared_ptr<Patch> {
    return shard >= 0 && shard < static_cast<int>(patches.size()) ? patches[shard] : nullptr;
  };
  for (const auto& piece : message.pieces) {
    if (auto patch = patch_of(piece.shard)) {
      ReadShard({piece.source, piece.from}, [patch, piece](const absl::StatusOr<DenseShard>& shard) {
        absl::Status fits =
            shard.ok() ? CheckSource(shard->type, patch->dtype(), piece.start, piece.extent) : shard.status();
        if (fits.ok()) fits = CheckBox(patch->dims(), piece.at, piece.extent);
        if (!fits.ok()) return patch->Ended(fits);
        patch->Fill(BytesOf(shard->bytes), {shard->type.dims, piece.start}, piece.at, piece.extent);
      });
    }
  }
  for (const auto& receive : message.receives) {
    std::vector<std::pair<std::shared_ptr<Patch>, net::Dims>> targets;
    for (const auto& target : receive.targets) {
      if (auto patch = patch_of(target.shard)) targets.emplace_back(patch, target.at);
    }
    ReceiveBox(message.task, message.dtype, receive, std::move(targets));
  }
  for (const auto& send : message.sends) SendBox(task, message.dtype, send);
  for (const auto& patch : patches) {
    if (patch != nullptr) patch->Ended(absl::OkStatus());
  }
}

std::shared_ptr<Worker::Patch> Worker::NewPatch(const std::shared_ptr<Task>& task, net::BufferId buffer, DType dtype,
                                                const net::PatchBuffer::Shard& shard, Boxes boxes) {
  if (!IsDevice(shard.device)) {
    task->PartDone(absl::InvalidArgumentError(absl::StrCat("worker ", options_.name, " has no device ", shard.device)));
    return nullptr;
  }
  const Place target = {buffer, shard.device};
  const device::ArrayType type = {dtype, shard.dims};
  auto patch = std::make_shared<Patch>(
      shard.dims, dtype, boxes.count,
      [weak = std::weak_ptr<Worker*>(self_), loop = options_.loop, task, target,
       type](absl::StatusOr<ShardBytes> bytes) {
        loop->Post([weak, task, target, type, bytes = std::move(bytes)] {
          auto self = weak.lock();
          if (self == nullptr) return;
          Worker& worker = **self;
          if (!bytes.ok()) return worker.PutPart(task, target, bytes.status());
          const device::HostArray array{type, bytes->get(), {}, *bytes};
          worker.PutPart(task, target,
                         worker.options_.client->FromHost(*worker.options_.client->devices()[target.device], array));
        });
      });
  if (absl::Status memory = patch->Allocate(boxes.bytes); !memory.ok()) {
    PutPart(task, target, memory);
    return nullptr;
  }
  (void)store_.Put(buffer, shard.device, store::Shard::Pending());
  return patch;
}

void Worker::SendBox(const std::shared_ptr<Task>& task, DType dtype, const net::PatchBuffer::Send& send) {
  if (options_.fabric == nullptr) {
    return task->PartDone(absl::UnimplementedError(absl::StrCat("worker ", options_.name, " has no data plane")));
  }
  const ShardRoute route{task->id(), send.to, send.piece};
  ReadShard({send.source, send.from},
            [task, route, send, dtype, fabric = options_.fabric](const absl::StatusOr<DenseShard>& shard) {
              const auto packed = shard.ok() ? Packed(shard->type, shard->bytes, dtype, send) : shard.status();
              if (!packed.ok()) return FailSend(*fabric, *task, packed.status());
              SendShard(*fabric, route, packed->owner(), {BytesOf(*packed), packed->size()},
                        [task](const absl::Status& status) { task->PartDone(status); });
            });
}

void Worker::ReceiveBox(net::TaskId task, DType dtype, const net::PatchBuffer::Receive& receive,
                        std::vector<std::pair<std::shared_ptr<Patch>, net::Dims>> targets) {
  const net::Dims extent = receive.extent;
  auto finish = [targets = std::move(targets), extent](const absl::StatusOr<ShardBytes>& bytes) {
    const net::Dims origin(extent.size(), 0);
    for (const auto& [patch, at] : targets) {
      absl::Status status = bytes.ok() ? CheckBox(patch->dims(), at, extent) : bytes.status();
      if (!status.ok()) {
        patch->Ended(status);
      } else {
        patch->Fill(static_cast<const std::byte*>(bytes->get()), {extent, origin}, at, extent);
      }
    }
  };
  const absl::StatusOr<uint64_t> size = DenseBytes(dtype, extent);
  if (!size.ok()) return finish(size.status());
  if (options_.fabric == nullptr) {
    return finish(absl::UnimplementedError(absl::StrCat("worker ", options_.name, " has no data plane")));
  }
  ReceiveShard(*options_.fabric, {task, receive.from, receive.piece}, *size, *options_.compile, finish);
}

}  // namespace gangway::worker
