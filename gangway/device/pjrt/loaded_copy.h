// Machine code of a program in one client inside the plugin, which may go while nobody runs it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "gangway/device/pjrt/plugin.h"

namespace gangway::device::pjrt {

// Loaded when it is first wanted and again after it was dropped. A process may have so many memory maps
// (vm.max_map_count), and each copy takes a dozen or more: when half of them are taken, copies are dropped that were
// not run for the longest time. Thread-safe.
class LoadedCopy {
 public:
  using Load = std::function<absl::StatusOr<PJRT_LoadedExecutable*>()>;
  using Unload = std::function<void(PJRT_LoadedExecutable*)>;

  // The code stays while one of these is there.
  class Use {
   public:
    Use(Use&& other) noexcept : copy_(std::exchange(other.copy_, nullptr)), handle_(other.handle_) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(copy_, other.copy_);
      std::swap(handle_, other.handle_);
      return *this;
    }
    ~Use() {
      if (copy_ != nullptr) copy_->Release();
    }
    PJRT_LoadedExecutable* handle() const { return handle_; }

   private:
    friend class LoadedCopy;
    Use(LoadedCopy* copy, PJRT_LoadedExecutable* handle) : copy_(copy), handle_(handle) {}
    LoadedCopy* copy_;
    PJRT_LoadedExecutable* handle_;
  };

  LoadedCopy(Load load, Unload unload);
  ~LoadedCopy();
  LoadedCopy(const LoadedCopy&) = delete;

  // Loads it unless it is loaded; whoever comes meanwhile waits. The copy must outlive the use.
  absl::StatusOr<Use> Get();

 private:
  friend class Copies;
  void Release();
  bool DropIfUnused();

  const Load load_;
  const Unload unload_;
  absl::Mutex mutex_;
  PJRT_LoadedExecutable* handle_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int uses_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<int64_t> last_use_ = 0;
};

// Drops those of the process's copies that nobody uses, the older half of them; how many. Done by itself when memory
// maps get short.
int DropOldCopies();

}  // namespace gangway::device::pjrt
