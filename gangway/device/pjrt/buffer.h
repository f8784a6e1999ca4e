// Arrays in the plugin's memory.
#pragma once

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gangway/device/device.h"
#include "gangway/device/pjrt/instance.h"

namespace gangway::device::pjrt {

// Exists before its memory does: the output of a queued launch is made with Pending and gets its handle, or an error,
// when the launch is over.
class PjrtBuffer final : public Buffer, public std::enable_shared_from_this<PjrtBuffer> {
 public:
  // The value is there once `available` is: a launch's output.
  static std::shared_ptr<PjrtBuffer> Pending(PjrtDevice& device, ArrayType type, Future<Unit> available);
  // Takes the handle over; its value may still be on the way.
  static std::shared_ptr<PjrtBuffer> Of(PjrtDevice& device, ArrayType type, PJRT_Buffer* handle);
  ~PjrtBuffer() override;

  const ArrayType& type() const override { return type_; }
  Device& device() const override { return device_; }
  int64_t size_bytes() const override { return size_bytes_; }
  Future<Unit> Ready() const override;
  Future<Unit> ToHost(void* dst) override;
  Future<absl::Span<const std::byte>> View() override;
  BufferRef CopyTo(Device& target) override;
  void Delete() override;
  bool deleted() const override;

  // Before the promise behind `available` is set. Takes the handle over.
  void Fulfil(PJRT_Buffer* handle);

  // A use keeps the memory although Delete is called. FAILED_PRECONDITION when it is already.
  absl::Status BeginUse();
  void EndUse();
  // Somebody uses it beside one who asks because he does.
  bool UsedByOthers() const;

  // Ready when WaitForHandle does not block.
  const Future<Unit>& available() const { return available_; }
  // Within a use: the handle, or the error of the producer, or DEADLINE_EXCEEDED. Blocks while the producer, on another
  // device's thread, has not finished.
  absl::StatusOr<PJRT_Buffer*> WaitForHandle();
  // Within a use, after a launch: lets go of the handle if the launch took it by donation.
  void NoteDonation();

 private:
  PjrtBuffer(PjrtDevice& device, ArrayType type, Future<Unit> available, bool ready_when_available);

  PJRT_Buffer* handle() const;
  // Starts work on the handle once it is there; `start` gets nullptr and the error otherwise. Holds a use meanwhile.
  template <typename T>
  Future<T> Use(std::function<Future<T>(PJRT_Buffer*)> start);
  Future<Unit> StartToHost(PJRT_Buffer* handle, void* dst);
  absl::StatusOr<absl::Span<const std::byte>> ViewOf(PJRT_Buffer* handle) const;
  void DestroyHandle(PJRT_Buffer* handle) const;

  PjrtDevice& device_;
  const std::shared_ptr<const Instance> instance_;
  const ArrayType type_;
  const int64_t size_bytes_;
  const Future<Unit> available_;  // handle_ is set, or the error
  const bool ready_when_available_;
  mutable absl::Mutex mutex_;
  PJRT_Buffer* handle_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int uses_ ABSL_GUARDED_BY(mutex_) = 0;
  bool deleted_ ABSL_GUARDED_BY(mutex_) = false;
};

int64_t DenseBytes(const ArrayType& type);

}  // namespace gangway::device::pjrt
