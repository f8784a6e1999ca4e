#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/ifrt_proxy/handlers/execution_answer.h"
#include "gangway/ifrt_proxy/handlers/handlers.h"
#include "gangway/ifrt_proxy/protocol.h"
#include "gangway/ifrt_proxy/sealed_program.h"
#include "gangway/mesh/geometry.h"
#include "xla/pjrt/proto/compile_options.pb.h"
#include "xla/python/pjrt_ifrt/xla_compiler.pb.h"
#include "xla/python/pjrt_ifrt/xla_host_callback.pb.h"

namespace gangway::ifrt_proxy {
namespace {

using compile::ValueInfo;
using controller::ArraySpec;
using controller::CompileRequest;
using controller::DeviceId;
using controller::Program;

// The device assignment: logical device (partition) -> device. Several replicas are refused: JAX uses partitions for
// everything.
absl::StatusOr<std::vector<DeviceId>> AssignedDevices(const xla::ExecutableBuildOptionsProto& build) {
  std::vector<DeviceId> devices;
  if (build.device_assignment().computation_devices().empty()) {
    devices.push_back(DeviceId(static_cast<int32_t>(build.device_ordinal() < 0 ? 0 : build.device_ordinal())));
    return devices;
  }
  for (const auto& computation : build.device_assignment().computation_devices()) {
    if (computation.replica_device_ids_size() != 1) {
      return absl::UnimplementedError(
          absl::StrCat("programs of ", computation.replica_device_ids_size(), " replicas; partitions are served"));
    }
    devices.push_back(DeviceId(static_cast<int32_t>(computation.replica_device_ids(0))));
  }
  return devices;
}

// Of a program of the kind that JAX compiles.
absl::StatusOr<xla::CompileOptionsProto> ParseOptions(const wire::CompileRequest& request) {
  constexpr absl::string_view kServed = "xla::ifrt::XlaProgram";
  if (request.program().type_name() != kServed) {
    return absl::UnimplementedError(
        absl::StrCat("gangway compiles programs of type ", kServed, ", not ", request.program().type_name()));
  }
  xla::ifrt::XlaCompileOptionsProto options;
  if (request.compile_options().type_name() != "xla::ifrt::XlaCompileOptions" ||
      !options.ParseFromString(request.compile_options().data())) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed compile options of type '", request.compile_options().type_name(), "'"));
  }
  return std::move(*options.mutable_compile_options());
}

absl::StatusOr<CompileRequest> ParseCompileRequest(const wire::CompileRequest& request,
                                                   const xla::CompileOptionsProto& options) {
  const auto& build = options.executable_build_options();
  CompileRequest result;
  result.artifact = request.program().data();
  GW_ASSIGN_OR_RETURN(result.devices, AssignedDevices(build));
  result.options.num_partitions = static_cast<int64_t>(result.devices.size());
  result.options.host_callbacks = request.host_callbacks_size();
  for (bool allowed : build.allow_spmd_sharding_propagation_to_parameters()) {
    result.options.propagate_to_parameters.push_back(allowed);
  }
  for (bool allowed : build.allow_spmd_sharding_propagation_to_output()) {
    result.options.propagate_to_output.push_back(allowed);
  }
  return result;
}

// What the client calls its functions, 0 where it does not say: our plugin puts the number where the client's own form
// has channels, 16 bits on each of two operands.
std::vector<uint64_t> HostCallbacksOf(const wire::CompileRequest& request) {
  std::vector<uint64_t> functions;
  for (const std::string& serialized : request.host_callbacks()) {
    xla::ifrt::XlaHostCallbackProto callback;
    uint64_t& function = functions.emplace_back(0);
    if (!callback.ParseFromString(serialized) || callback.operands_size() != 2) continue;
    function = uint64_t{callback.operands(0).channel_id()} | uint64_t{callback.operands(1).channel_id()} << 16;
  }
  return functions;
}

// The text of an option of our plugin's; empty when the request has none.
std::string OptionOf(const xla::CompileOptionsProto& options, const char* name) {
  auto it = options.env_option_overrides().find(name);
  return it == options.env_option_overrides().end() ? "" : it->second.string_field();
}

// Sealed, the program whose fingerprint was given to the client.
absl::StatusOr<std::string> SealByFingerprint(Session& session, const std::string& fingerprint) {
  GW_ASSIGN_OR_RETURN(const Executable* executable, session.FindExecutable(fingerprint));
  if (executable->program == nullptr || executable->request == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("executable ", fingerprint, " is not compiled"));
  }
  GW_ASSIGN_OR_RETURN_WITH(std::string sealed, Seal(*executable->request),
                           absl::StrCat("executable ", executable->program->compiled.name));
  return sealed;
}

// What was sealed, for the devices of the request that brings it where that names as many, else for those it had.
absl::StatusOr<wire::CompileRequest> Open(const std::string& text, const xla::CompileOptionsProto& options) {
  std::string sealed;
  if (!absl::Base64Unescape(text, &sealed)) return absl::InvalidArgumentError("a sealed executable is no base64");
  GW_ASSIGN_OR_RETURN(wire::CompileRequest request, Unseal(sealed));
  xla::ifrt::XlaCompileOptionsProto own;
  own.ParseFromString(request.compile_options().data());
  const auto& wanted = options.executable_build_options().device_assignment();
  auto* build = own.mutable_compile_options()->mutable_executable_build_options();
  if (wanted.computation_devices_size() == build->device_assignment().computation_devices_size()) {
    *build->mutable_device_assignment() = wanted;
    request.mutable_compile_options()->set_data(own.SerializeAsString());
  }
  return request;
}

ArraySpec OutputSpec(const Program& program, const ValueInfo& output) {
  ArraySpec spec;
  spec.dtype = output.shape.dtype();
  spec.dims = output.shape.dims();
  spec.devices = program.devices;
  spec.sharding = output.sharding;
  spec.memory_kind = output.memory_kind;
  return spec;
}

// The compiled program of a handle; FAILED_PRECONDITION while it is still being compiled.
absl::StatusOr<Executable*> Compiled(Session& session, uint64_t handle) {
  GW_ASSIGN_OR_RETURN(Executable * executable, session.FindExecutable(handle));
  if (executable->program == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("executable ", handle, " is not compiled"));
  }
  return executable;
}

xla::LayoutProto LayoutOf(const ValueInfo& value) {
  xla::LayoutProto layout;
  for (int64_t dim : value.minor_to_major) layout.add_minor_to_major(dim);
  return layout;
}

void FillMemory(const net::ProgramMemory& told, xla::CompiledMemoryStatsProto* memory) {
  memory->set_argument_size_in_bytes(told.arguments);
  memory->set_output_size_in_bytes(told.outputs);
  memory->set_alias_size_in_bytes(told.aliased);
  memory->set_temp_size_in_bytes(told.temporaries);
  memory->set_peak_memory_in_bytes(told.peak);
  memory->set_generated_code_size_in_bytes(told.code);
}

// What we expect of a program whose devices do not tell.
void ModelMemory(const compile::CompiledProgram& compiled, xla::CompiledMemoryStatsProto* memory) {
  auto shard_bytes = [](const std::vector<ValueInfo>& values) {
    int64_t bytes = 0;
    for (const ValueInfo& value : values) bytes += ShardShape(value.shape, value.sharding).ByteSize();
    return bytes;
  };
  memory->set_argument_size_in_bytes(shard_bytes(compiled.parameters));
  memory->set_output_size_in_bytes(shard_bytes(compiled.outputs));
  // What the peak holds beside arguments and results; results in donated arguments are not counted apart.
  const int64_t outside = memory->argument_size_in_bytes() + memory->output_size_in_bytes();
  memory->set_temp_size_in_bytes(std::max<int64_t>(0, compiled.stats.peak_bytes_per_device - outside));
  memory->set_peak_memory_in_bytes(compiled.stats.peak_bytes_per_device);
  memory->set_generated_code_size_in_bytes(static_cast<int64_t>(compiled.executable.size()));
}

void FillMetadata(const Program& program, wire::LoadedExecutableMetadataResponse* response) {
  const compile::CompiledProgram& compiled = program.compiled;
  if (program.devices.size() > 1) {
    auto* parameters = response->mutable_parameter_shardings();
    for (const ValueInfo& value : compiled.parameters) *parameters->add_shardings() = ToProto(value.sharding);
    auto* outputs = response->mutable_output_shardings();
    for (const ValueInfo& value : compiled.outputs) *outputs->add_shardings() = ToProto(value.sharding);
  }
  for (const ValueInfo& value : compiled.parameters) {
    *response->mutable_parameter_layouts_list()->add_layouts() = LayoutOf(value);
  }
  for (const ValueInfo& value : compiled.outputs) {
    *response->mutable_output_layouts_list()->add_layouts() = LayoutOf(value);
  }
  auto* kinds = response->mutable_output_memory_kinds()->add_memory_kind_lists();
  for (const ValueInfo& value : compiled.outputs) {
    kinds->add_memory_kinds(value.memory_kind.empty() ? "device" : value.memory_kind);
  }
  auto* donated = response->mutable_donated_input_indices();
  for (size_t i = 0; i < compiled.donation.size(); ++i) {
    if (compiled.donation[i] != compile::Donation::kNone) donated->add_donated_input_indices(static_cast<uint32_t>(i));
  }
  auto* memory = response->mutable_compiled_memory_stats();
  program.memory.has_value() ? FillMemory(*program.memory, memory) : ModelMemory(compiled, memory);
  response->set_size_of_generated_code_in_bytes(memory->generated_code_size_in_bytes());
}

void AddFloat(xla::ifrt::AttributeMapProto* map, const std::string& key, double value) {
  (*map->mutable_attributes())[key].set_float_value(static_cast<float>(value));
}

IfrtResponse CompileResponse(const Reply& reply, uint64_t handle, const std::vector<DeviceId>& devices,
                             const Executable& executable) {
  IfrtResponse response = reply.Empty();
  auto* compiled = response.mutable_compile_response();
  compiled->set_loaded_executable_handle(handle);
  compiled->set_name(executable.program->compiled.name);
  compiled->set_num_devices(static_cast<int32_t>(devices.size()));
  for (DeviceId device : devices) {
    compiled->add_device_ids(device.value());
    compiled->add_addressable_device_ids(device.value());
  }
  compiled->set_fingerprint_value(executable.fingerprint);
  return response;
}

// The client's function that is told how values lie: number 0 of its connection. Operands: the length of the key (64
// bits), the key, an OpSharding.
constexpr uint64_t kTellSharding = 0;

SharedBytes TellingOf(const compile::InspectedSharding& inspected) {
  const uint64_t length = inspected.key.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  absl::StrAppend(&bytes, inspected.key, ToProto(inspected.sharding).SerializeAsString());
  return std::make_shared<const std::string>(std::move(bytes));
}

// Answers every question of the program, then goes on with the first error there was.
void TellShardings(Session& session, const Program& program, std::function<void(absl::Status)> then) {
  const auto& inspected = program.compiled.inspected;
  if (inspected.empty() || !session.host_calls().connected()) return then(absl::OkStatus());
  struct Pending {
    size_t left;
    absl::Status status;
    std::function<void(absl::Status)> then;
  };
  auto pending = std::make_shared<Pending>(Pending{inspected.size(), absl::OkStatus(), std::move(then)});
  for (const compile::InspectedSharding& one : inspected) {
    session.host_calls().Ask(kTellSharding, TellingOf(one), [pending](const absl::StatusOr<SharedBytes>& answer) {
      pending->status.Update(answer.status());
      if (--pending->left == 0) pending->then(pending->status);
    });
  }
}

void AnswerCompiled(Session& session, uint64_t handle, const std::vector<DeviceId>& devices, const Reply& reply) {
  auto executable = session.FindExecutable(handle);
  if (!executable.ok()) return reply.Fail(absl::CancelledError("executable deleted while compiling"));
  IfrtResponse response = CompileResponse(reply, handle, devices, **executable);
  auto* compiled = response.mutable_compile_response();
  compiled->set_ready_future_handle(session.NameFuture(0, ReadyFuture()));
  for (uint64_t callback : session.host_calls().Add((*executable)->id, (*executable)->host_callbacks)) {
    compiled->add_loaded_host_callback_handles(callback);
  }
  reply.Send(std::move(response));
}

void Compile(Session& session, const wire::CompileRequest& request, const xla::CompileOptionsProto& options,
             std::string fingerprint, const Reply& reply) {
  auto parsed = ParseCompileRequest(request, options);
  if (!parsed.ok()) return reply.Fail(parsed.status());
  std::vector<DeviceId> devices = parsed->devices;
  auto [id, ready] = session.controller().Compile(session.id(), *std::move(parsed));
  uint64_t handle =
      session.NameExecutable({id, nullptr, HostCallbacksOf(request),
                              std::make_shared<const wire::CompileRequest>(request), std::move(fingerprint)});
  // The answer waits for the compilation, since it names the program; requests behind it do not.
  ready.OnReady([reply, handle, devices,
                 weak = session.weak_from_this()](const absl::StatusOr<std::shared_ptr<const Program>>& program) {
    std::shared_ptr<Session> session = weak.lock();
    if (session == nullptr) return;
    auto executable = session->FindExecutable(handle);
    if (!program.ok() || !executable.ok()) {
      session->ForgetExecutable(handle);
      return reply.Fail(program.ok() ? absl::CancelledError("executable deleted while compiling") : program.status());
    }
    (*executable)->program = *program;
    TellShardings(*session, **program, [reply, handle, devices, weak](const absl::Status& told) {
      std::shared_ptr<Session> session = weak.lock();
      if (session == nullptr) return;
      if (told.ok()) return AnswerCompiled(*session, handle, devices, reply);
      session->ForgetExecutable(handle);
      reply.Fail(told);
    });
  });
}

}  // namespace

void HandleCompile(Session& session, const wire::CompileRequest& request, const Reply& reply) {
  if (absl::Status many = session.CheckExecutables(); !many.ok()) return reply.Fail(many);
  if (request.program().type_name() == "xla::ifrt::PluginProgram") return HandleCompilePlugin(session, request, reply);
  auto options = ParseOptions(request);
  if (!options.ok()) return reply.Fail(options.status());
  if (const std::string text = OptionOf(*options, kOpenOption); !text.empty()) {
    auto opened = Open(text, *options);
    if (!opened.ok()) return reply.Fail(opened.status());
    auto own = ParseOptions(*opened);
    return own.ok() ? Compile(session, *opened, *own, FingerprintOf(*opened), reply) : reply.Fail(own.status());
  }
  const std::string asked = OptionOf(*options, kSealOption);
  if (asked.empty()) return Compile(session, request, *options, FingerprintOf(request), reply);
  auto sealed = SealByFingerprint(session, asked);
  sealed.ok() ? Compile(session, request, *options, *std::move(sealed), reply) : reply.Fail(sealed.status());
}

void HandleExecutableMetadata(Session& session, const wire::LoadedExecutableMetadataRequest& request,
                              const Reply& reply) {
  if (auto found = session.FindExecutable(request.loaded_executable_handle()); found.ok() && (*found)->reshard) {
    return HandlePluginMetadata(reply);
  }
  auto executable = Compiled(session, request.loaded_executable_handle());
  if (!executable.ok()) return reply.Fail(executable.status());
  IfrtResponse response = reply.Empty();
  FillMetadata(*(*executable)->program, response.mutable_loaded_executable_metadata_response());
  reply.Send(std::move(response));
}

void HandleExecute(Session& session, const wire::LoadedExecutableExecuteRequest& request, const Reply& reply) {
  if (auto found = session.FindExecutable(request.loaded_executable_handle()); found.ok() && (*found)->reshard) {
    return HandleExecutePlugin(session, *(*found)->reshard, request, reply);
  }
  const bool wants_status = request.execute_options().fill_status() || request.result_status_handle() != 0;
  auto execute = [&]() -> absl::StatusOr<controller::ExecuteResult> {
    GW_ASSIGN_OR_RETURN(Executable * executable, Compiled(session, request.loaded_executable_handle()));
    GW_ASSIGN_OR_RETURN(auto arguments, session.Arrays(request.args_handles()));
    controller::ExecuteOptions options;
    for (int index : request.execute_options().non_donatable_input_indices()) options.non_donatable.insert(index);
    options.notify = wants_status || !executable->host_callbacks.empty();
    auto result = session.controller().Execute(session.id(), executable->id, arguments, options);
    if (!result.ok()) return session.CauseOf(result.status(), arguments);
    if (!executable->host_callbacks.empty()) {
      session.host_calls().Begin(executable->id);
      result->done.OnReady([weak = session.weak_from_this(), program = executable->id](const auto&) {
        if (auto self = weak.lock()) self->host_calls().End(program);
      });
    }
    return result;
  };
  auto result = execute();
  if (!result.ok()) return FailExecution(session, request, result.status(), reply);
  IfrtResponse response = reply.Empty();
  auto* executed = response.mutable_loaded_executable_execute_response();
  Executable& executable = **session.FindExecutable(request.loaded_executable_handle());
  bool client_named = request.result_array_handle_size() > 0;
  for (size_t i = 0; i < result->outputs.size(); ++i) {
    const uint64_t handle = NameResult(session, request, i, result->outputs[i]);
    if (client_named) continue;  // the client remembers what the first execution told it
    AddOutput(OutputSpec(*executable.program, executable.program->compiled.outputs[i]), handle, executed);
  }
  if (wants_status) AddStatus(session, request, result->done, executed);
  reply.Send(std::move(response));
}

void HandleFetchExecuteResult(Session& session, const wire::LoadedExecutableFetchExecuteResultRequest& request,
                              const Reply& reply) {
  auto done = session.TakeFuture(request.result_status_handle());
  if (!done.ok()) return reply.Fail(done.status());
  done->OnReady([reply](const absl::StatusOr<Unit>& outcome) { reply.OkOrFail(outcome.status()); });
}

void HandleCostAnalysis(Session& session, const wire::LoadedExecutableCostAnalysisRequest& request,
                        const Reply& reply) {
  auto executable = Compiled(session, request.loaded_executable_handle());
  if (!executable.ok()) return reply.Fail(executable.status());
  const compile::ProgramStats& stats = (*executable)->program->compiled.stats;
  IfrtResponse response = reply.Empty();
  auto* attributes = response.mutable_loaded_executable_cost_analysis_response()->mutable_attributes();
  AddFloat(attributes, "flops", stats.flops_per_device);
  AddFloat(attributes, "bytes accessed", stats.bytes_accessed_per_device);
  for (const auto& [name, collective] : stats.collectives) {
    AddFloat(attributes, absl::StrCat(name, " bytes received"), collective.bytes_received);
    AddFloat(attributes, absl::StrCat(name, " count"), collective.executed);
  }
  reply.Send(std::move(response));
}

void HandleProgramText(Session& session, const wire::LoadedExecutableHumanReadableProgramTextRequest& request,
                       const Reply& reply) {
  auto executable = Compiled(session, request.loaded_executable_handle());
  if (!executable.ok()) return reply.Fail(executable.status());
  IfrtResponse response = reply.Empty();
  response.mutable_loaded_executable_human_readable_program_text_response()->set_human_readable_program_text(
      (*executable)->program->compiled.per_device->ToString());
  reply.Send(std::move(response));
}

void HandleDeleteExecutable(Session& session, const wire::LoadedExecutableDeleteRequest& request, const Reply& reply) {
  session.ForgetExecutable(request.loaded_executable_handle());
  IfrtResponse response = reply.Empty();
  response.mutable_loaded_executable_delete_response()->set_future_handle(session.NameFuture(0, ReadyFuture()));
  reply.Send(std::move(response));
}

void HandleIsExecutableDeleted(Session& session, const wire::LoadedExecutableIsDeletedRequest& request,
                               const Reply& reply) {
  IfrtResponse response = reply.Empty();
  response.mutable_loaded_executable_is_deleted_response()->set_is_deleted(
      !session.FindExecutable(request.loaded_executable_handle()).ok());
  reply.Send(std::move(response));
}

void HandleDestructExecutable(Session& session, const wire::LoadedExecutableDestructRequest& request,
                              const Reply& reply) {
  session.ForgetExecutable(request.loaded_executable_handle());
  reply.Ok();
}

}  // namespace gangway::ifrt_proxy
