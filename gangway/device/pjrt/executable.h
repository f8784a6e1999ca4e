// Compiled programs of a plugin and their launches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gangway/device/pjrt/buffer.h"
#include "gangway/device/pjrt/hosted.h"
#include "gangway/device/pjrt/instance.h"

namespace gangway::device::pjrt {

class PjrtExecutable final : public Executable, public std::enable_shared_from_this<PjrtExecutable> {
 public:
  static absl::StatusOr<std::shared_ptr<PjrtExecutable>> Compile(std::shared_ptr<const Instance> instance,
                                                                 const CompileRequest& request);
  ~PjrtExecutable() override;

  absl::string_view name() const override { return name_; }
  absl::Span<const ArrayType> outputs() const override { return outputs_; }
  ProgramMemory memory() const override { return memory_; }
  Execution Execute(Device& device, absl::Span<const BufferRef> inputs, const ExecuteOptions& options) override;

 private:
  struct Queued;  // one launch, from Execute until it is over
  struct Run;     // the plugin's arguments of a launch in progress

  PjrtExecutable(std::shared_ptr<const Instance> instance, std::string name, PJRT_LoadedExecutable* handle)
      : instance_(std::move(instance)), name_(std::move(name)), handle_(handle) {}
  absl::Status ReadSignature();
  void ReadMemory(PJRT_Executable* executable);

  // On the device's thread.
  void RunQueued(Queued& queued);
  absl::Status Launch(Queued& queued, std::vector<PJRT_Buffer*>& results);
  absl::Status LaunchWith(Queued& queued, PJRT_ExecuteContext* context, std::vector<PJRT_Buffer*>& results);
  std::string Describe(const Queued& queued) const;

  const std::shared_ptr<const Instance> instance_;
  const std::string name_;
  PJRT_LoadedExecutable* const handle_;
  std::vector<ArrayType> outputs_;
  ProgramMemory memory_;
  bool hosted_ops_ = false;
  OpCache ops_;
};

}  // namespace gangway::device::pjrt
