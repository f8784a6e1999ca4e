// Compiled programs of a plugin and their launches.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gangway/device/pjrt/buffer.h"
#include "gangway/device/pjrt/hosted.h"
#include "gangway/device/pjrt/instance.h"
#include "gangway/device/pjrt/loaded_copy.h"

namespace gangway::device::pjrt {

// A program in the form the clients inside the plugin hold it: compiled once and loaded into each client where it first
// runs, or compiled for each where the plugin cannot serialize it (XLA's CPU sort with a known comparator). The copies
// go when there are too many (loaded_copy.h); what was compiled first stays.
// Thread-safe.
class Program {
 public:
  // Compiles for `instance`.
  static absl::StatusOr<std::unique_ptr<Program>> Compile(std::shared_ptr<const Instance> instance,
                                                          const CompileRequest& request);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Instance& instance() const { return *first_; }
  // As compiled, for its signature.
  PJRT_LoadedExecutable* handle() const { return compiled_; }
  // Whether it was compiled for `instance`; others need a copy.
  bool IsFor(const Instance& instance) const { return first_.get() == &instance; }
  LoadedCopy& CopyFor(const std::shared_ptr<const Instance>& instance);

 private:
  Program(std::shared_ptr<const Instance> first, PJRT_LoadedExecutable* compiled, const CompileRequest& request)
      : first_(std::move(first)), compiled_(compiled), name_(request.name), hlo_(request.hlo) {}
  // Null when the instance's cache has nothing that it can load.
  static std::unique_ptr<Program> FromCache(const std::shared_ptr<const Instance>& instance,
                                            const CompileRequest& request);
  absl::StatusOr<PJRT_LoadedExecutable*> LoadInto(const Instance& instance);
  absl::Status Serialize() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<const Instance> first_;
  PJRT_LoadedExecutable* const compiled_;
  absl::Mutex mutex_;
  const std::string name_;
  // Kept until what was serialized has been loaded once, and from then on `serialized_` instead: the plugin does not
  // read all that it writes (nested deeply).
  std::string hlo_ ABSL_GUARDED_BY(mutex_);
  std::string serialized_ ABSL_GUARDED_BY(mutex_);  // empty until a second client needs it
  bool unreadable_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<const Instance*, std::unique_ptr<LoadedCopy>> copies_ ABSL_GUARDED_BY(mutex_);
};

// Whether a program's launches are small enough for the lane: known after some of them ran on their devices' threads,
// and watched from then on. Thread-safe.
class Size {
 public:
  bool IsSmall() const { return small_.load(std::memory_order_relaxed); }
  // A launch took so much of its thread's time.
  void Note(int64_t nanoseconds);
  // The plugin called a collective on a thread of its own: its launches may block their thread.
  void NeverSmall();

 private:
  std::atomic<bool> small_ = false;
  std::atomic<bool> never_ = false;
  std::atomic<int> measured_ = 0;
  std::atomic<int64_t> mean_ns_ = 0;  // a running mean; of two updates at once one may be lost
};

class PjrtExecutable final : public Executable, public std::enable_shared_from_this<PjrtExecutable> {
 public:
  static absl::StatusOr<std::shared_ptr<PjrtExecutable>> Compile(std::shared_ptr<const Instance> instance,
                                                                 const CompileRequest& request);

  absl::string_view name() const override { return name_; }
  absl::Span<const ArrayType> outputs() const override { return outputs_; }
  std::optional<ProgramMemory> memory() const override { return memory_; }
  Execution Execute(Device& device, absl::Span<const BufferRef> inputs, const ExecuteOptions& options) override;

 private:
  struct Queued;  // one launch, from Execute until it is over

  PjrtExecutable(std::string name, std::unique_ptr<Program> program)
      : name_(std::move(name)), program_(std::move(program)) {}
  absl::Status ReadSignature();
  void ReadMemory(PJRT_Executable* executable);

  // On the device's thread, or on a fiber of the lane.
  void RunQueued(Queued& queued, Fiber* fiber);
  absl::Status Launch(Queued& queued, Fiber* fiber, std::vector<PJRT_Buffer*>& results);
  absl::Status LaunchWith(Queued& queued, PJRT_ExecuteContext* context, Fiber* fiber,
                          std::vector<PJRT_Buffer*>& results);
  std::string Describe(const Queued& queued) const;

  const std::string name_;
  const std::unique_ptr<Program> program_;
  std::vector<ArrayType> outputs_;
  std::optional<ProgramMemory> memory_;
  bool hosted_ops_ = false;
  OpCache ops_;
  Size size_;
};

}  // namespace gangway::device::pjrt
