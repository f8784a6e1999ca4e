// Clients inside a plugin and their devices, shared by everything made from them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/call_once.h"
#include "gangway/base/executor.h"
#include "gangway/device/device.h"
#include "gangway/device/pjrt/code_cache.h"
#include "gangway/device/pjrt/launch_queue.h"
#include "gangway/device/pjrt/plugin.h"

namespace gangway::device::pjrt {

// A client inside the plugin; ours may consist of several. Shared by its devices, buffers and executables, so that it
// goes last.
struct Instance {
  Instance(std::shared_ptr<const Plugin> plugin, PJRT_Client* client) : plugin(std::move(plugin)), client(client) {}
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const PJRT_Api& api() const { return plugin->api(); }
  template <typename Args>
  absl::Status Call(PJRT_Error* (*function)(Args*), Args& args) const {
    return plugin->Call(function, args);
  }

  const std::shared_ptr<const Plugin> plugin;
  PJRT_Client* const client;
  std::string platform;
  bool hosted_ops = false;     // the plugin can run hosted collectives
  bool deterministic = false;  // programs are compiled so
  std::string files;           // the folder that clients may use; empty: none
  std::optional<CodeCache> code;
};

// A device and the queue of its launches.
class PjrtDevice final : public Device {
 public:
  // `index`: its place among the devices of our client. Reads the description; errors when the plugin does not give
  // one.
  static absl::StatusOr<std::unique_ptr<PjrtDevice>> Make(std::shared_ptr<const Instance> instance, PJRT_Device* device,
                                                          int index, std::shared_ptr<Lane> lane);

  int id() const override { return index_; }
  absl::string_view kind() const override { return kind_; }
  absl::Span<const int64_t> coords() const override { return coords_; }
  MemoryStats memory_stats() const override;

  // "cpu:3", for messages.
  const std::string& name() const { return name_; }
  PJRT_Device* handle() const { return handle_; }
  const std::shared_ptr<const Instance>& instance() const { return instance_; }
  LaunchQueue& launches() { return *launches_; }
  // Where programs that called their client go on. Made when first asked for.
  Executor& callback_thread();

 private:
  PjrtDevice(std::shared_ptr<const Instance> instance, PJRT_Device* handle, int index)
      : instance_(std::move(instance)), handle_(handle), index_(index) {}
  absl::Status ReadDescription();

  const std::shared_ptr<const Instance> instance_;
  PJRT_Device* const handle_;
  const int index_;
  std::string kind_;
  std::string name_;
  std::vector<int64_t> coords_;
  std::unique_ptr<LaunchQueue> launches_;
  absl::once_flag callback_once_;
  std::unique_ptr<Executor> callback_thread_;
};

}  // namespace gangway::device::pjrt
