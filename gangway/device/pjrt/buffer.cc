#include "gangway/device/pjrt/buffer.h"

#include <functional>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gangway/device/pjrt/event.h"

namespace gangway::device::pjrt {
namespace {

// An input's producer is a copy queued on another device; gangs end within their own, shorter, deadline.
constexpr absl::Duration kProducerDeadline = absl::Minutes(10);

absl::Status DeletedError() { return absl::FailedPreconditionError("the buffer was deleted or donated"); }

// Hands the outcome of `from` on to `to`.
template <typename T>
void Forward(const Future<T>& from, const Promise<T>& to) {
  from.OnReady([to](const absl::StatusOr<T>& outcome) { to.Set(outcome); });
}

// The plugin leaves the upper bits of unpacked signed elements unset.
void SignExtend(void* data, int64_t count, int bits) {
  const int spare = 8 - bits;
  auto* bytes = static_cast<int8_t*>(data);
  for (int64_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<int8_t>(static_cast<int8_t>(static_cast<uint8_t>(bytes[i]) << spare) >> spare);
  }
}

}  // namespace

int64_t DenseBytes(const ArrayType& type) {
  int64_t bytes = ByteWidth(type.dtype);
  for (int64_t dim : type.dims) bytes *= dim;
  return bytes;
}

PjrtBuffer::PjrtBuffer(PjrtDevice& device, ArrayType type, Future<Unit> available, bool ready_when_available)
    : device_(device),
      instance_(device.instance()),
      type_(std::move(type)),
      size_bytes_(DenseBytes(type_)),
      available_(std::move(available)),
      ready_when_available_(ready_when_available) {}

std::shared_ptr<PjrtBuffer> PjrtBuffer::Pending(PjrtDevice& device, ArrayType type, Future<Unit> available) {
  return std::shared_ptr<PjrtBuffer>(new PjrtBuffer(device, std::move(type), std::move(available), true));
}

std::shared_ptr<PjrtBuffer> PjrtBuffer::Of(PjrtDevice& device, ArrayType type, PJRT_Buffer* handle) {
  std::shared_ptr<PjrtBuffer> buffer(new PjrtBuffer(device, std::move(type), ReadyFuture(), false));
  buffer->Fulfil(handle);
  return buffer;
}

PjrtBuffer::~PjrtBuffer() { DestroyHandle(handle_); }

void PjrtBuffer::DestroyHandle(PJRT_Buffer* handle) const {
  if (handle == nullptr) return;
  GW_PJRT_ARGS(PJRT_Buffer_Destroy_Args, args);
  args.buffer = handle;
  instance_->Call(instance_->api().PJRT_Buffer_Destroy, args).IgnoreError();
}

PJRT_Buffer* PjrtBuffer::handle() const {
  absl::MutexLock lock(&mutex_);
  return handle_;
}

void PjrtBuffer::Fulfil(PJRT_Buffer* handle) {
  {
    absl::MutexLock lock(&mutex_);
    if (!deleted_ || uses_ > 0) handle_ = std::exchange(handle, nullptr);
  }
  DestroyHandle(handle);  // deleted before it was there
}

absl::Status PjrtBuffer::BeginUse() {
  absl::MutexLock lock(&mutex_);
  if (deleted_) return DeletedError();
  ++uses_;
  return absl::OkStatus();
}

bool PjrtBuffer::UsedByOthers() const {
  absl::MutexLock lock(&mutex_);
  return uses_ > 1;
}

void PjrtBuffer::EndUse() {
  PJRT_Buffer* unused = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (--uses_ == 0 && deleted_) unused = std::exchange(handle_, nullptr);
  }
  DestroyHandle(unused);
}

void PjrtBuffer::Delete() {
  PJRT_Buffer* unused = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    deleted_ = true;
    if (uses_ == 0) unused = std::exchange(handle_, nullptr);
  }
  DestroyHandle(unused);
}

bool PjrtBuffer::deleted() const {
  absl::MutexLock lock(&mutex_);
  return deleted_;
}

absl::StatusOr<PJRT_Buffer*> PjrtBuffer::WaitForHandle() {
  if (!available_.IsReady()) {
    GW_RETURN_IF_ERROR(
        available_.Await(absl::Now() + kProducerDeadline, absl::StrCat("an input of ", device_.name())).status());
  }
  GW_RETURN_IF_ERROR(available_.Await(absl::InfinitePast(), "a ready future").status());
  PJRT_Buffer* found = handle();
  if (found == nullptr) return DeletedError();
  return found;
}

void PjrtBuffer::NoteDonation() {
  PJRT_Buffer* taken = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (handle_ == nullptr) return;
    GW_PJRT_ARGS(PJRT_Buffer_IsDeleted_Args, args);
    args.buffer = handle_;
    if (!instance_->Call(instance_->api().PJRT_Buffer_IsDeleted, args).ok() || !args.is_deleted) return;
    deleted_ = true;
    taken = std::exchange(handle_, nullptr);
  }
  DestroyHandle(taken);
}

template <typename T>
Future<T> PjrtBuffer::Use(std::function<Future<T>(PJRT_Buffer*)> start) {
  if (absl::Status status = BeginUse(); !status.ok()) return Future<T>(status);
  Promise<T> promise;
  available_.OnReady(
      [self = shared_from_this(), start = std::move(start), promise](const absl::StatusOr<Unit>& outcome) {
        PJRT_Buffer* handle = outcome.ok() ? self->handle() : nullptr;
        const absl::Status unusable = outcome.ok() ? DeletedError() : outcome.status();
        Future<T> started = handle != nullptr ? start(handle) : Future<T>(unusable);
        self->EndUse();  // before anybody hears: who does may give the buffer away at once
        Forward(started, promise);
      });
  return promise.future();
}

Future<Unit> PjrtBuffer::Ready() const {
  if (ready_when_available_) return available_;
  // The handle was there from the start, so this never waits for it.
  return const_cast<PjrtBuffer*>(this)->Use<Unit>([instance = instance_](PJRT_Buffer* handle) {
    GW_PJRT_ARGS(PJRT_Buffer_ReadyEvent_Args, args);
    args.buffer = handle;
    if (absl::Status status = instance->Call(instance->api().PJRT_Buffer_ReadyEvent, args); !status.ok()) {
      return Future<Unit>(status);
    }
    return ToFuture(instance->plugin, args.event);
  });
}

Future<Unit> PjrtBuffer::ToHost(void* dst) {
  if (size_bytes_ == 0) return deleted() ? Future<Unit>(DeletedError()) : Ready();
  // In use until the bytes are there, like what is copied.
  if (absl::Status status = BeginUse(); !status.ok()) return Future<Unit>(status);
  Promise<Unit> there;
  Use<Unit>([this, dst](PJRT_Buffer* handle) {
    return StartToHost(handle, dst);
  }).OnReady([self = shared_from_this(), there](const absl::StatusOr<Unit>& outcome) {
    self->EndUse();
    there.Set(outcome);
  });
  return there.future();
}

Future<Unit> PjrtBuffer::StartToHost(PJRT_Buffer* handle, void* dst) {
  absl::InlinedVector<int64_t, 6> minor_to_major;
  for (size_t d = type_.dims.size(); d > 0; --d) minor_to_major.push_back(static_cast<int64_t>(d) - 1);
  PJRT_Buffer_MemoryLayout layout = {};
  layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = minor_to_major.size();
  GW_PJRT_ARGS(PJRT_Buffer_ToHostBuffer_Args, args);
  args.src = handle;
  args.host_layout = &layout;
  args.dst = dst;
  args.dst_size = static_cast<size_t>(size_bytes_);
  if (absl::Status status = instance_->Call(instance_->api().PJRT_Buffer_ToHostBuffer, args); !status.ok()) {
    return Future<Unit>(status);
  }
  Future<Unit> copied = ToFuture(instance_->plugin, args.event);
  const int bits = BitWidth(type_.dtype);
  if (!IsSigned(type_.dtype) || bits >= 8) return copied;
  Promise<Unit> extended;
  copied.OnReady([dst, count = size_bytes_, bits, extended](const absl::StatusOr<Unit>& outcome) {
    if (outcome.ok()) SignExtend(dst, count, bits);
    extended.Set(outcome);
  });
  return extended.future();
}

Future<absl::Span<const std::byte>> PjrtBuffer::View() {
  using Bytes = absl::Span<const std::byte>;
  Promise<Bytes> promise;
  Ready().OnReady([self = shared_from_this(), promise](const absl::StatusOr<Unit>& outcome) {
    if (!outcome.ok()) return promise.Set(outcome.status());
    PJRT_Buffer* handle = self->handle();
    promise.Set(handle == nullptr ? absl::StatusOr<Bytes>(DeletedError()) : self->ViewOf(handle));
  });
  return promise.future();
}

absl::StatusOr<absl::Span<const std::byte>> PjrtBuffer::ViewOf(PJRT_Buffer* handle) const {
  const absl::Status no_view = absl::UnimplementedError("the device's memory is not the dense array in host memory");
  if (instance_->platform != "cpu" || (BitWidth(type_.dtype) < 8 && type_.dtype != DType::kPred)) return no_view;
  if (!GW_PJRT_HAS(instance_->api(), PJRT_Buffer_OpaqueDeviceMemoryDataPointer) ||
      !GW_PJRT_HAS(instance_->api(), PJRT_Buffer_GetMemoryLayout)) {
    return no_view;
  }
  GW_PJRT_ARGS(PJRT_Buffer_GetMemoryLayout_Args, layout);
  layout.buffer = handle;
  GW_RETURN_IF_ERROR(instance_->Call(instance_->api().PJRT_Buffer_GetMemoryLayout, layout));
  const PJRT_Buffer_MemoryLayout_Tiled& tiled = layout.layout.tiled;
  const size_t rank = type_.dims.size();
  if (layout.layout.type != PJRT_Buffer_MemoryLayout_Type_Tiled || tiled.num_tiles != 0 ||
      tiled.minor_to_major_size != rank) {
    return no_view;
  }
  for (size_t d = 0; d < rank; ++d) {
    if (tiled.minor_to_major[d] != static_cast<int64_t>(rank - 1 - d)) return no_view;
  }
  GW_PJRT_ARGS(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, pointer);
  pointer.buffer = handle;
  GW_RETURN_IF_ERROR(instance_->Call(instance_->api().PJRT_Buffer_OpaqueDeviceMemoryDataPointer, pointer));
  return absl::MakeConstSpan(static_cast<const std::byte*>(pointer.device_memory_ptr),
                             static_cast<size_t>(size_bytes_));
}

BufferRef PjrtBuffer::CopyTo(Device& target) {
  auto& device = static_cast<PjrtDevice&>(target);
  Promise<Unit> there;
  auto copy = Pending(device, type_, there.future());
  if (absl::Status status = BeginUse(); !status.ok()) {
    there.Set(status);
    return copy;
  }
  available_.OnReady([self = shared_from_this(), copy, there, &device](const absl::StatusOr<Unit>& outcome) {
    absl::Status status = outcome.status();
    GW_PJRT_ARGS(PJRT_Buffer_CopyToDevice_Args, args);
    args.buffer = self->handle();
    args.dst_device = device.handle();
    if (status.ok() && args.buffer == nullptr) status = DeletedError();
    if (status.ok()) status = self->instance_->Call(self->instance_->api().PJRT_Buffer_CopyToDevice, args);
    GW_PJRT_ARGS(PJRT_Buffer_ReadyEvent_Args, ready);
    if (status.ok()) {
      copy->Fulfil(args.dst_buffer);
      ready.buffer = args.dst_buffer;
      status = self->instance_->Call(self->instance_->api().PJRT_Buffer_ReadyEvent, ready);
    }
    if (!status.ok()) {
      self->EndUse();
      return there.Set(status);
    }
    // In use until the bytes are there, which may be later.
    ToFuture(self->instance_->plugin, ready.event).OnReady([self, there](const absl::StatusOr<Unit>& arrived) {
      self->EndUse();
      there.Set(arrived);
    });
  });
  return copy;
}

}  // namespace gangway::device::pjrt
