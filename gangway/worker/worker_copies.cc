// Arrays made of the shards of others, of this worker and of others.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/worker/shard_transfer.h"
#include "gangway/worker/worker.h"

namespace gangway::worker {

void Worker::FailSend(net::Fabric& fabric, Task& task, const absl::Status& status) {
  task.PartDone(status);
  fabric.Abandon(task.id().value(), status);
}

void Worker::On(net::CopyBuffer message) {
  size_t parts = message.parts.size() + message.sends.size();
  for (const auto& receive : message.receives) parts += receive.to.size();
  auto task = ledger_.Begin(message.task, static_cast<int>(parts), /*report=*/false);
  if (!message.parts.empty() || !message.receives.empty()) (void)store_.Create(message.buffer);
  for (const auto& receive : message.receives) ReceivePart(task, message.buffer, message.dtype, receive);
  for (const auto& send : message.sends) SendPart(task, send);
  for (size_t i = 0; i < message.parts.size(); ++i) {
    const auto& part = message.parts[i];
    if (!IsDevice(part.from) || !IsDevice(part.to)) {
      task->PartDone(
          absl::InvalidArgumentError(absl::StrCat("worker ", options_.name, ": copy between unknown devices")));
      continue;
    }
    const Place target = {message.buffer, part.to};
    const store::LogicalBuffer* source = store_.Find(part.source);
    if (source == nullptr || !(*source)[part.from].exists()) {
      PutPart(task, target,
              absl::NotFoundError(absl::StrCat("copy of buffer ", part.source.value(), ", which worker ", options_.name,
                                               " does not have on device ", part.from)));
      continue;
    }
    const net::Dims* dims = i < message.dims.size() ? &message.dims[i] : nullptr;
    store::Shard shard = (*source)[part.from];
    if (shard.pending()) (void)store_.Put(message.buffer, part.to, store::Shard::Pending());
    CopyPart(task, target, std::move(shard), dims);
  }
}

void Worker::CopyPart(const std::shared_ptr<Task>& task, Place target, store::Shard source, const net::Dims* dims) {
  if (source.pending()) {
    std::optional<net::Dims> owned_dims;
    if (dims != nullptr) owned_dims = *dims;
    return WhenSettled(source, [task, target, source, owned_dims](Worker& worker) {
      worker.CopyPart(task, target, source, owned_dims.has_value() ? &*owned_dims : nullptr);
    });
  }
  auto value = source.Value();
  if (!value.ok()) return PutPart(task, target, value.status());
  device::BufferRef buffer = *value;
  device::Device& device = *options_.client->devices()[target.device];
  if (dims != nullptr && buffer->type().dims != *dims) return Reshape(task, target, std::move(buffer), *dims);
  if (buffer->device().id() == device.id()) return PutPart(task, target, std::move(buffer));
  PutPart(task, target, buffer->CopyTo(device));
}

// The same bytes under other extents: in place where the device shows its memory, by the host otherwise.
void Worker::Reshape(const std::shared_ptr<Task>& task, Place target, device::BufferRef source, net::Dims dims) {
  const absl::StatusOr<uint64_t> bytes = DenseBytes(source->type().dtype, dims);
  if (!bytes.ok() || *bytes != static_cast<uint64_t>(source->size_bytes())) {
    return PutPart(task, target,
                   absl::InvalidArgumentError(absl::StrCat("a shard of ", source->size_bytes(),
                                                           " bytes cannot become [", absl::StrJoin(dims, ","), "]")));
  }
  (void)store_.Put(target.buffer, target.device, store::Shard::Pending());
  std::weak_ptr<Worker*> weak = self_;
  std::shared_ptr<Executor> loop = options_.loop;
  auto finish = [weak, loop, task, target, source, dims](absl::Status status, std::shared_ptr<const void> owner,
                                                         const void* data) {
    loop->Post([weak, task, target, source, dims, status, owner, data] {
      auto self = weak.lock();
      if (self == nullptr) return;
      if (!status.ok()) return (*self)->PutPart(task, target, status);
      device::HostArray array;
      array.type = {source->type().dtype, dims};
      array.data = data;
      array.owner = owner;
      auto& client = *(*self)->options_.client;
      (*self)->PutPart(task, target, client.FromHost(*client.devices()[target.device], array));
    });
  };
  // What is made in place lives in the source's memory.
  source->View().OnReady(
      [source, loan = Loan(source), finish](const absl::StatusOr<absl::Span<const std::byte>>& view) {
        if (view.ok()) return finish(absl::OkStatus(), loan, view->data());
        if (!absl::IsUnimplemented(view.status())) return finish(view.status(), nullptr, nullptr);
        auto bytes = std::make_shared<std::string>(source->size_bytes(), '\0');
        source->ToHost(bytes->data()).OnReady([bytes, finish](const absl::StatusOr<Unit>& done) {
          finish(done.status(), bytes, bytes->data());
        });
      });
}

void Worker::SendPart(const std::shared_ptr<Task>& task, const net::CopyBuffer::Send& send) {
  if (options_.fabric == nullptr) {
    return task->PartDone(absl::UnimplementedError(absl::StrCat("worker ", options_.name, " has no data plane")));
  }
  const ShardRoute route{task->id(), send.to, send.position};
  ReadShard({send.source, send.from}, [task, route, fabric = options_.fabric](const absl::StatusOr<DenseShard>& shard) {
    if (!shard.ok()) return FailSend(*fabric, *task, shard.status());
    SendShard(*fabric, route, shard->bytes.owner(),
              {reinterpret_cast<const std::byte*>(shard->bytes.data()), shard->bytes.size()},
              [task](const absl::Status& status) { task->PartDone(status); });
  });
}

void Worker::ReceivePart(const std::shared_ptr<Task>& task, net::BufferId buffer, DType dtype,
                         const net::CopyBuffer::Receive& receive) {
  auto finish = [this, task, buffer, dtype, receive](const absl::StatusOr<ShardBytes>& bytes) {
    for (int device : receive.to) {
      if (!IsDevice(device)) {
        task->PartDone(absl::InvalidArgumentError(absl::StrCat("worker ", options_.name, " has no device ", device)));
      } else if (!bytes.ok()) {
        PutPart(task, {buffer, device}, bytes.status());
      } else {
        device::HostArray array{{dtype, receive.dims}, bytes->get(), {}, *bytes};
        PutPart(task, {buffer, device}, options_.client->FromHost(*options_.client->devices()[device], array));
      }
    }
  };
  const absl::StatusOr<uint64_t> size = DenseBytes(dtype, receive.dims);
  if (!size.ok()) return finish(size.status());
  if (options_.fabric == nullptr) {
    return finish(absl::UnimplementedError(absl::StrCat("worker ", options_.name, " has no data plane")));
  }
  for (int device : receive.to) {
    if (IsDevice(device)) (void)store_.Put(buffer, device, store::Shard::Pending());
  }
  const ShardRoute route{task->id(), receive.from, receive.position};
  ReceiveShard(*options_.fabric, route, *size, *options_.compile,
               [weak = std::weak_ptr<Worker*>(self_), loop = options_.loop, finish](absl::StatusOr<ShardBytes> bytes) {
                 loop->Post([weak, finish, bytes = std::move(bytes)] {
                   if (weak.lock() != nullptr) finish(bytes);
                 });
               });
}

}  // namespace gangway::worker
