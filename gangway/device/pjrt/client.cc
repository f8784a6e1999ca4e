#include "gangway/device/pjrt/client.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/device/pjrt/buffer.h"
#include "gangway/device/pjrt/event.h"
#include "gangway/device/pjrt/executable.h"
#include "gangway/device/pjrt/hosted.h"
#include "gangway/device/pjrt/instance.h"
#include "gangway/device/pjrt/types.h"
#include "gangway/lapack/routine.h"

namespace gangway::device {
namespace pjrt {
namespace {

using CreateOption = std::pair<std::string, std::variant<int64_t, bool, float, std::string>>;

class PjrtClient final : public Client {
 public:
  PjrtClient(std::vector<std::shared_ptr<Instance>> instances, std::string version)
      : instances_(std::move(instances)), version_(std::move(version)) {}

  absl::Status FindDevices();

  absl::string_view platform() const override { return instances_[0]->platform; }
  absl::string_view platform_version() const override { return version_; }
  absl::Span<Device* const> devices() const override { return devices_; }
  absl::StatusOr<std::shared_ptr<Executable>> Compile(const CompileRequest& request) override {
    return PjrtExecutable::Compile(instances_[0], request);
  }
  absl::StatusOr<BufferRef> FromHost(Device& device, const HostArray& array) override;

 private:
  const std::vector<std::shared_ptr<Instance>> instances_;  // at least one
  const std::string version_;
  const std::shared_ptr<Lane> lane_ = std::make_shared<Lane>();  // shared by the devices
  std::vector<std::unique_ptr<PjrtDevice>> owned_;
  std::vector<Device*> devices_;
};

absl::Status PjrtClient::FindDevices() {
  for (const std::shared_ptr<Instance>& instance : instances_) {
    GW_PJRT_ARGS(PJRT_Client_AddressableDevices_Args, args);
    args.client = instance->client;
    GW_RETURN_IF_ERROR(instance->Call(instance->api().PJRT_Client_AddressableDevices, args));
    for (size_t i = 0; i < args.num_addressable_devices; ++i) {
      GW_ASSIGN_OR_RETURN(
          std::unique_ptr<PjrtDevice> device,
          PjrtDevice::Make(instance, args.addressable_devices[i], static_cast<int>(devices_.size()), lane_));
      devices_.push_back(device.get());
      owned_.push_back(std::move(device));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BufferRef> PjrtClient::FromHost(Device& device, const HostArray& array) {
  auto& target = static_cast<PjrtDevice&>(device);
  const Instance& instance = *target.instance();
  const std::optional<PJRT_Buffer_Type> type =
      IsElement(array.type.dtype) ? ToPjrt(array.type.dtype) : std::nullopt;  // XLA aborts on an array of tokens
  if (!type.has_value()) {
    return absl::UnimplementedError(absl::StrCat("PJRT has no arrays of element type ", DTypeName(array.type.dtype)));
  }
  if (!array.byte_strides.empty() && array.byte_strides.size() != array.type.dims.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(array.byte_strides.size(), " strides for an array of rank ", array.type.dims.size()));
  }
  GW_PJRT_ARGS(PJRT_Client_BufferFromHostBuffer_Args, args);
  args.client = instance.client;
  args.data = array.data;
  args.type = *type;
  args.dims = array.type.dims.data();
  args.num_dims = array.type.dims.size();
  args.byte_strides = array.byte_strides.data();
  args.num_byte_strides = array.byte_strides.size();
  args.host_buffer_semantics = array.owner == nullptr ? PJRT_HostBufferSemantics_kImmutableOnlyDuringCall
                                                      : PJRT_HostBufferSemantics_kImmutableZeroCopy;
  args.device = target.handle();
  GW_RETURN_IF_ERROR(instance.Call(instance.api().PJRT_Client_BufferFromHostBuffer, args));
  if (array.owner == nullptr) {
    Destroy(*instance.plugin, args.done_with_host_buffer);
  } else {
    ToFuture(instance.plugin, args.done_with_host_buffer).OnReady([owner = array.owner](const auto&) {});
  }
  return PjrtBuffer::Of(target, array.type, args.buffer);
}

PJRT_NamedValue ToNamedValue(const CreateOption& option) {
  PJRT_NamedValue named = {};
  named.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  named.name = option.first.data();
  named.name_size = option.first.size();
  named.value_size = 1;
  if (const auto* i = std::get_if<int64_t>(&option.second)) {
    named.type = PJRT_NamedValue_kInt64;
    named.int64_value = *i;
  } else if (const auto* b = std::get_if<bool>(&option.second)) {
    named.type = PJRT_NamedValue_kBool;
    named.bool_value = *b;
  } else if (const auto* f = std::get_if<float>(&option.second)) {
    named.type = PJRT_NamedValue_kFloat;
    named.float_value = *f;
  } else {
    const std::string& text = std::get<std::string>(option.second);
    named.type = PJRT_NamedValue_kString;
    named.string_value = text.data();
    named.value_size = text.size();
  }
  return named;
}

absl::StatusOr<std::shared_ptr<Instance>> StartInstance(const std::shared_ptr<const Plugin>& plugin, bool hosted_ops,
                                                        absl::Span<const CreateOption> options) {
  std::vector<PJRT_NamedValue> named;
  for (const CreateOption& option : options) named.push_back(ToNamedValue(option));
  const PJRT_Api& api = plugin->api();
  GW_PJRT_ARGS(PJRT_Client_Create_Args, create);
  create.create_options = named.data();
  create.num_options = named.size();
  GW_RETURN_IF_ERROR_WITH(plugin->Call(api.PJRT_Client_Create, create),
                          absl::StrCat("PJRT plugin ", plugin->path(), ": starting its client"));
  auto instance = std::make_shared<Instance>(plugin, create.client);
  GW_PJRT_ARGS(PJRT_Client_PlatformName_Args, name);
  name.client = create.client;
  GW_RETURN_IF_ERROR(plugin->Call(api.PJRT_Client_PlatformName, name));
  instance->platform = std::string(name.platform_name, name.platform_name_size);
  // The handlers are functions of the host.
  instance->hosted_ops = hosted_ops && instance->platform == "cpu";
  return instance;
}

// Threads of one device: in XLA's CPU client, which sizes its pools by this variable where it is set (the user's own
// setting wins), and in LAPACK.
void ShareCores(int64_t devices) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t share = std::max<int64_t>(1, cores / devices);
  if (devices > 1) setenv("NPROC", absl::StrCat(share).c_str(), /*overwrite=*/0);
  lapack::SetThreads(static_cast<int>(share));
}

absl::StatusOr<std::unique_ptr<Client>> MakeClient(const PjrtOptions& options) {
  GW_ASSIGN_OR_RETURN(std::shared_ptr<const Plugin> plugin, Plugin::Load(options.plugin_path));
  const absl::Status hosted = RegisterHostedOps(*plugin);
  if (!hosted.ok() && hosted.code() != absl::StatusCode::kUnimplemented) return hosted;
  int64_t clients = 1;
  std::vector<CreateOption> create_options = options.create_options;
  for (CreateOption& option : create_options) {
    auto* count = std::get_if<int64_t>(&option.second);
    if (option.first == "cpu_device_count" && count != nullptr && *count > 1) clients = std::exchange(*count, 1);
  }
  ShareCores(clients);
  std::vector<std::shared_ptr<Instance>> instances;
  for (int64_t i = 0; i < clients; ++i) {
    GW_ASSIGN_OR_RETURN(instances.emplace_back(), StartInstance(plugin, hosted.ok(), create_options));
    instances.back()->deterministic = options.deterministic;
    instances.back()->files = options.files;
  }
  GW_PJRT_ARGS(PJRT_Client_PlatformVersion_Args, version);
  version.client = instances[0]->client;
  GW_RETURN_IF_ERROR(plugin->Call(plugin->api().PJRT_Client_PlatformVersion, version));
  std::string text(version.platform_version, version.platform_version_size);
  if (!options.cache.empty()) instances[0]->code.emplace(options.cache, *plugin, text);
  auto client = std::make_unique<PjrtClient>(std::move(instances), std::move(text));
  GW_RETURN_IF_ERROR(client->FindDevices());
  return client;
}

}  // namespace
}  // namespace pjrt

absl::StatusOr<std::unique_ptr<Client>> MakePjrtClient(const PjrtOptions& options) { return pjrt::MakeClient(options); }

}  // namespace gangway::device
