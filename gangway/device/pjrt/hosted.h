// Hosted operations (HOSTED.md) as handlers of the XLA FFI, called by the plugin inside a running program.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "gangway/collective/op.h"
#include "gangway/device/device.h"
#include "gangway/device/pjrt/instance.h"
#include "gangway/device/pjrt/lane.h"
#include "gangway/device/pjrt/plugin.h"
#include "xla/ffi/api/c_api.h"

namespace gangway::device::pjrt {

// The collectives of one executable, parsed from their attributes when first called. Thread-safe.
class OpCache {
 public:
  std::shared_ptr<const collective::Op> Find(int64_t key, int participants) const;
  void Add(std::shared_ptr<const collective::Op> op);

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<int64_t, std::shared_ptr<const collective::Op>> ops_ ABSL_GUARDED_BY(mutex_);
};

// What a handler finds in the execution context. Lives until the launch is complete.
struct HostedLaunch {
  const LaunchContext* launch = nullptr;
  OpCache* ops = nullptr;
  PjrtDevice* device = nullptr;  // where it runs
  Fiber* fiber = nullptr;        // what the launch runs on; null on a device's own thread
  Lane* lane = nullptr;
  std::thread::id thread{};             // that launched it, when on a device's own
  std::atomic<bool> elsewhere = false;  // a collective was called on another thread
  std::atomic<int64_t> turns = 0;

  // The plugin calls handlers after the launch has begun and ends it when they have returned, on threads of its own.
  // These say so between ours: who takes over sees what was done before it was handed over.
  void HandOver() { turns.fetch_add(1, std::memory_order_release); }
  void TakeOver() const { turns.load(std::memory_order_acquire); }
};

// The launch a handler is called by, for as long as it looks at it.
class HostedCall {
 public:
  explicit HostedCall(HostedLaunch& launch) : launch_(&launch) { launch.TakeOver(); }
  HostedCall(HostedCall&& other) noexcept : launch_(std::exchange(other.launch_, nullptr)) {}
  HostedCall& operator=(HostedCall&&) = delete;
  ~HostedCall() {
    if (launch_ != nullptr) launch_->HandOver();
  }
  HostedLaunch* operator->() const { return launch_; }
  HostedLaunch& operator*() const { return *launch_; }

 private:
  HostedLaunch* launch_;
};

absl::StatusOr<HostedCall> FindLaunch(const XLA_FFI_CallFrame& frame);

// Registers the handlers and the type of the launch context with a plugin; before its first client is made.
// UNIMPLEMENTED when the plugin lacks the FFI extension or execute contexts.
absl::Status RegisterHostedOps(const Plugin& plugin);

// An execute context that carries `launch`; destroy it after the launch.
absl::StatusOr<PJRT_ExecuteContext*> MakeExecuteContext(const Plugin& plugin, HostedLaunch* launch);
void DestroyExecuteContext(const Plugin& plugin, PJRT_ExecuteContext* context);

}  // namespace gangway::device::pjrt
