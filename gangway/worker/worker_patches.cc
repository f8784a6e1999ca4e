// Shards put together from boxes of others, of this worker and of others.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/worker/box.h"
#include "gangway/worker/pieces.h"
#include "gangway/worker/shard_transfer.h"
#include "gangway/worker/worker.h"

namespace gangway::worker {

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

  // OK when there is memory for it. After the boxes are known and before any is filled.
  absl::Status Allocate() {
    GW_ASSIGN_OR_RETURN(const uint64_t size, DenseBytes(dtype_, dims_));
    GW_ASSIGN_OR_RETURN(bytes_, NewShardBytes(size));
    return absl::OkStatus();
  }

  void Fill(const std::byte* from, BoxPlace source, const net::Dims& at, const net::Dims& extent) {
    CopyBox(from, source, static_cast<std::byte*>(bytes_.get()), {dims_, at}, extent, ByteWidth(dtype_));
    Ended(absl::OkStatus());
  }

  // A box is over, or the last word that all are under way.
  void Ended(const absl::Status& status) { boxes_.Ended(status); }

  const net::Dims& dims() const { return dims_; }

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
  std::vector<int> boxes(message.shards.size(), 0);
  auto count = [&](int shard) {
    if (shard >= 0 && shard < static_cast<int>(boxes.size())) ++boxes[shard];
  };
  for (const auto& piece : message.pieces) count(piece.shard);
  for (const auto& receive : message.receives) {
    for (const auto& target : receive.targets) count(target.shard);
  }
  for (size_t i = 0; i < message.shards.size(); ++i) {
    patches.push_back(NewPatch(task, message.buffer, message.dtype, message.shards[i], boxes[i]));
  }
  auto patch_of = [&](int shard) -> std::shared_ptr<Patch> {
    return shard >= 0 && shard < static_cast<int>(patches.size()) ? patches[shard] : nullptr;
  };
  for (const auto& piece : message.pieces) {
    if (auto patch = patch_of(piece.shard)) {
      ReadBox({piece.source, piece.from, piece.start, piece.extent},
              [patch, at = piece.at](const absl::StatusOr<Box>& box) {
                if (!box.ok()) return patch->Ended(box.status());
                absl::Status fits = CheckBox(patch->dims(), at, box->extent);
                if (!fits.ok()) return patch->Ended(fits);
                patch->Fill(box->bytes, {box->dims, box->start}, at, box->extent);
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
                                                const net::PatchBuffer::Shard& shard, int boxes) {
  if (!IsDevice(shard.device)) {
    task->PartDone(absl::InvalidArgumentError(absl::StrCat("worker ", options_.name, " has no device ", shard.device)));
    return nullptr;
  }
  const Place target = {buffer, shard.device};
  const device::ArrayType type = {dtype, shard.dims};
  auto patch = std::make_shared<Patch>(
      shard.dims, dtype, boxes,
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
  if (absl::Status memory = patch->Allocate(); !memory.ok()) {
    PutPart(task, target, memory);
    return nullptr;
  }
  (void)store_.Put(buffer, shard.device, store::Shard::Pending());
  return patch;
}

void Worker::ReadBox(const BoxSource& wanted, std::function<void(absl::StatusOr<Box>)> done) {
  const store::LogicalBuffer* source = store_.Find(wanted.buffer);
  if (source == nullptr || !IsDevice(wanted.device) || !(*source)[wanted.device].exists()) {
    return done(absl::NotFoundError(absl::StrCat("buffer ", wanted.buffer.value(), " has no shard on device ",
                                                 wanted.device, " of worker ", options_.name)));
  }
  ReadBoxOf((*source)[wanted.device], wanted, std::move(done));
}

void Worker::ReadBoxOf(const store::Shard& shard, const BoxSource& wanted,
                       std::function<void(absl::StatusOr<Box>)> done) {
  if (shard.pending()) {
    shard.OnSettled([weak = std::weak_ptr<Worker*>(self_), loop = options_.loop, shard, wanted, done] {
      loop->Post([weak, shard, wanted, done] {
        if (auto self = weak.lock()) (*self)->ReadBoxOf(shard, wanted, done);
      });
    });
    return;
  }
  auto value = shard.Value();
  if (!value.ok()) return done(value.status());
  const net::Dims dims = (*value)->type().dims;
  if (absl::Status inside = CheckBox(dims, wanted.start, wanted.extent); !inside.ok()) return done(inside);
  ReadBytes(*value, [dims, wanted, done](const absl::StatusOr<net::Payload>& bytes) {
    if (!bytes.ok()) return done(bytes.status());
    done(Box{dims, wanted.start, wanted.extent, bytes->owner(), reinterpret_cast<const std::byte*>(bytes->data())});
  });
}

void Worker::SendBox(const std::shared_ptr<Task>& task, DType dtype, const net::PatchBuffer::Send& send) {
  if (options_.fabric == nullptr) {
    return task->PartDone(absl::UnimplementedError(absl::StrCat("worker ", options_.name, " has no data plane")));
  }
  const ShardRoute route{task->id(), send.to, send.piece};
  ReadBox({send.source, send.from, send.start, send.extent},
          [task, route, dtype, fabric = options_.fabric](const absl::StatusOr<Box>& box) {
            auto size = box.ok() ? DenseBytes(dtype, box->extent) : box.status();
            if (!size.ok()) return FailSend(*fabric, *task, size.status());
            auto packed = NewShardBytes(*size);
            if (!packed.ok()) return FailSend(*fabric, *task, packed.status());
            const net::Dims origin(box->extent.size(), 0);
            CopyBox(box->bytes, {box->dims, box->start}, static_cast<std::byte*>(packed->get()), {box->extent, origin},
                    box->extent, ByteWidth(dtype));
            SendShard(*fabric, route, *packed, {static_cast<const std::byte*>(packed->get()), *size},
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
