#include "gangway/device/pjrt/instance.h"

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"

namespace gangway::device::pjrt {
namespace {

// The topology attribute "coords", where the plugin has one.
std::vector<int64_t> ReadCoords(const Instance& instance, PJRT_DeviceDescription* description) {
  if (!GW_PJRT_HAS(instance.api(), PJRT_DeviceDescription_Attributes)) return {};
  GW_PJRT_ARGS(PJRT_DeviceDescription_Attributes_Args, args);
  args.device_description = description;
  if (!instance.Call(instance.api().PJRT_DeviceDescription_Attributes, args).ok()) return {};
  for (size_t i = 0; i < args.num_attributes; ++i) {
    const PJRT_NamedValue& value = args.attributes[i];
    if (absl::string_view(value.name, value.name_size) == "coords" && value.type == PJRT_NamedValue_kInt64List) {
      return {value.int64_array_value, value.int64_array_value + value.value_size};
    }
  }
  return {};
}

}  // namespace

Instance::~Instance() {
  GW_PJRT_ARGS(PJRT_Client_Destroy_Args, args);
  args.client = client;
  Call(api().PJRT_Client_Destroy, args).IgnoreError();
}

absl::StatusOr<std::unique_ptr<PjrtDevice>> PjrtDevice::Make(std::shared_ptr<const Instance> instance,
                                                             PJRT_Device* device, int index,
                                                             std::shared_ptr<Lane> lane) {
  std::unique_ptr<PjrtDevice> made(new PjrtDevice(std::move(instance), device, index));
  GW_RETURN_IF_ERROR(made->ReadDescription());
  made->launches_ = std::make_unique<LaunchQueue>(made->name_, std::move(lane));
  return made;
}

Executor& PjrtDevice::callback_thread() {
  absl::call_once(callback_once_, [this] { callback_thread_ = MakeThreadExecutor(absl::StrCat(name_, "-callbacks")); });
  return *callback_thread_;
}

absl::Status PjrtDevice::ReadDescription() {
  GW_PJRT_ARGS(PJRT_Device_GetDescription_Args, get);
  get.device = handle_;
  GW_RETURN_IF_ERROR(instance_->Call(instance_->api().PJRT_Device_GetDescription, get));
  GW_PJRT_ARGS(PJRT_DeviceDescription_Kind_Args, kind);
  kind.device_description = get.device_description;
  GW_RETURN_IF_ERROR(instance_->Call(instance_->api().PJRT_DeviceDescription_Kind, kind));
  kind_ = std::string(kind.device_kind, kind.device_kind_size);
  name_ = absl::StrCat(instance_->platform, ":", index_);
  coords_ = ReadCoords(*instance_, get.device_description);
  return absl::OkStatus();
}

MemoryStats PjrtDevice::memory_stats() const {
  MemoryStats stats;
  if (!GW_PJRT_HAS(instance_->api(), PJRT_Device_MemoryStats)) return stats;
  GW_PJRT_ARGS(PJRT_Device_MemoryStats_Args, args);
  args.device = handle_;
  if (!instance_->Call(instance_->api().PJRT_Device_MemoryStats, args).ok()) return stats;
  stats.bytes_in_use = args.bytes_in_use;
  if (args.peak_bytes_in_use_is_set) stats.peak_bytes_in_use = args.peak_bytes_in_use;
  if (args.bytes_limit_is_set) stats.bytes_limit = args.bytes_limit;
  return stats;
}

}  // namespace gangway::device::pjrt
