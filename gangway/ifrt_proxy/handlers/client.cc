#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/ifrt_proxy/handlers/handlers.h"
#include "gangway/ifrt_proxy/protocol.h"

namespace gangway::ifrt_proxy {
namespace {

// Memory kinds JAX knows, the default first. All three are the worker's ordinary memory on CPU; the kind is part of a
// sharding.
constexpr const char* kMemoryKinds[] = {"device", "pinned_host", "unpinned_host"};

// Memories have ids of their own: kind * kMemoryStride + device.
constexpr int kMemoryStride = 1 << 20;

void SetInts(xla::ifrt::AttributeMapProto* map, const char* key, const std::vector<int>& values) {
  auto* list = (*map->mutable_attributes())[key].mutable_int64_list_value();
  for (int value : values) list->add_elements(value);
}

void SetInt(xla::ifrt::AttributeMapProto* map, const char* key, int64_t value) {
  (*map->mutable_attributes())[key].set_int64_value(value);
}

void AddDevice(const controller::DeviceInfo& info, const Session& session, wire::InitResponse* init) {
  int id = info.id.value();
  auto* device = init->add_all_devices();
  device->set_id(id);
  device->set_local_device_id(id);
  device->set_local_hardware_id(id);
  device->set_platform_name("cpu");
  device->set_device_kind(info.kind);
  // As natively: scripts and their logs tell devices by these.
  device->set_debug_string(absl::StrCat("cpu:", id));
  device->set_to_string(absl::StrCat("CpuDevice(id=", id, ")"));
  SetInts(device->mutable_attributes(), "coords", info.coords);
  (*device->mutable_attributes()->mutable_attributes())["worker"].set_string_value(info.worker);
  SetInt(device->mutable_attributes(), "core_on_chip", 0);
  SetInt(device->mutable_attributes(), "slice_index", info.island);
  // For our JAX plugin, which sees nothing of the session but its devices.
  SetInt(device->mutable_attributes(), "gangway_session", static_cast<int64_t>(session.options().key));
  SetInt(device->mutable_attributes(), "gangway_callback_port", session.options().callback_port);
  SetInt(device->mutable_attributes(), "gangway_callback_secret",
         static_cast<int64_t>(session.options().callback_secret));
  for (int kind = 0; kind < static_cast<int>(std::size(kMemoryKinds)); ++kind) {
    std::string memory_text = absl::StrCat("GangwayMemory(", kMemoryKinds[kind], ", device=", id, ")");
    auto* memory = init->add_memories();
    memory->set_id(kind * kMemoryStride + id);
    memory->set_memory_space_kind(kMemoryKinds[kind]);
    memory->set_kind_id(kind);
    memory->add_device_ids(id);
    memory->set_debug_string(memory_text);
    memory->set_to_string(memory_text);
    device->add_memory_ids(memory->id());
  }
  device->set_default_memory_id(id);
  init->add_addressable_device_ids(id);
  init->add_primary_device_ids(id);
}

}  // namespace

void HandleInit(Session& session, const Reply& reply) {
  IfrtResponse response = reply.Empty();
  wire::InitResponse* init = response.mutable_init_response();
  init->set_session_id(session.options().key);
  // JAX lowers by platform name; devices run XLA's CPU kernels, so CPU lowerings are the right ones.
  init->set_platform_name("cpu");
  init->set_platform_version(kPlatformVersion);
  init->set_platform_id(0x67776179);  // any constant that is no platform of XLA's
  init->set_process_index(0);
  init->set_runtime_type("gangway");
  // What jax.export asks its client: shardings may stay in the Shardy dialect, which we read.
  (*init->mutable_client_attributes()->mutable_attributes())["serialize_with_sdy"].set_bool_value(true);
  for (const controller::DeviceInfo& info : session.controller().devices()) AddDevice(info, session, init);
  reply.Send(std::move(response));
}

void HandleDefaultDeviceAssignment(Session& session, const wire::GetDefaultDeviceAssignmentRequest& request,
                                   const Reply& reply) {
  const auto& devices = session.controller().devices();
  uint64_t replicas = request.num_replicas(), partitions = request.num_partitions();
  if (replicas == 0 || partitions == 0 || replicas > devices.size() || partitions > devices.size() / replicas) {
    return reply.Fail(absl::InvalidArgumentError(absl::StrCat("no assignment of ", replicas, " replicas x ", partitions,
                                                              " partitions: there are ", devices.size(), " devices")));
  }
  IfrtResponse response = reply.Empty();
  auto* assignment = response.mutable_get_default_device_assignment_response()->mutable_device_assignment();
  assignment->set_replica_count(static_cast<int32_t>(replicas));
  assignment->set_computation_count(static_cast<int32_t>(partitions));
  for (uint64_t partition = 0; partition < partitions; ++partition) {
    auto* computation = assignment->add_computation_devices();
    for (uint64_t replica = 0; replica < replicas; ++replica) {
      computation->add_replica_device_ids(devices[partition * replicas + replica].id.value());
    }
  }
  reply.Send(std::move(response));
}

void HandleDefaultLayout(const wire::GetDefaultLayoutRequest& request, const Reply& reply) {
  IfrtResponse response = reply.Empty();
  // The layout's text, minor to major: row-major.
  response.mutable_get_default_layout_response()->set_serialized_pjrt_layout(
      RowMajorLayout(request.dims_size()).ToString());
  reply.Send(std::move(response));
}

void HandleCheckFuture(Session& session, const wire::CheckFutureRequest& request, const Reply& reply) {
  absl::StatusOr<Future<Unit>> future = session.TakeFuture(request.future_handle());
  if (!future.ok()) return reply.Fail(future.status());
  future->OnReady([reply](const absl::StatusOr<Unit>& outcome) { reply.OkOrFail(outcome.status()); });
}

}  // namespace gangway::ifrt_proxy
