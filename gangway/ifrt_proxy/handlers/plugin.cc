// Programs that are orders to the server (plugin_program.h).
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/ifrt_proxy/handlers/execution_answer.h"
#include "gangway/ifrt_proxy/handlers/handlers.h"
#include "gangway/ifrt_proxy/protocol.h"

namespace gangway::ifrt_proxy {
namespace {

using controller::ArrayId;
using controller::ArraySpec;

absl::StatusOr<std::vector<ArrayId>> Follow(Session& session, const ReshardOrder& order,
                                            const std::vector<ArrayId>& inputs) {
  if (inputs.size() != order.to.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("reshardRequest: ", inputs.size(), " arrays for ", order.to.size(), " shardings"));
  }
  std::vector<ArraySpec> specs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    GW_ASSIGN_OR_RETURN(const ArraySpec* from, session.controller().Spec(inputs[i]));
    GW_ASSIGN_OR_RETURN(specs.emplace_back(), MakeArraySpec(from->dtype, from->dims, order.to[i]));
  }
  return Resharded(session, inputs, std::move(specs), order.donate);
}

// When all of them are there; with the first error.
Future<Unit> AllReady(Session& session, const std::vector<ArrayId>& arrays) {
  struct Pending {
    size_t left;
    absl::Status status;
    Promise<Unit> all;
  };
  auto pending = std::make_shared<Pending>(Pending{arrays.size(), absl::OkStatus(), {}});
  if (arrays.empty()) return ReadyFuture();
  for (ArrayId array : arrays) {
    session.controller().Ready(array).OnReady([pending](const absl::StatusOr<Unit>& outcome) {
      pending->status.Update(outcome.status());
      if (--pending->left > 0) return;
      pending->all.Set(pending->status.ok() ? absl::StatusOr<Unit>(Unit{}) : pending->status);
    });
  }
  return pending->all.future();
}

}  // namespace

void HandleCompilePlugin(Session& session, const wire::CompileRequest& request, const Reply& reply) {
  auto order = ParsePluginProgram(request.program().data());
  if (!order.ok()) return reply.Fail(order.status());
  Executable executable;
  executable.reshard = std::make_shared<const ReshardOrder>(*std::move(order));
  const uint64_t handle = session.NameExecutable(std::move(executable));
  IfrtResponse response = reply.Empty();
  auto* compiled = response.mutable_compile_response();
  compiled->set_loaded_executable_handle(handle);
  compiled->set_name("reshard");
  compiled->set_num_devices(static_cast<int32_t>(session.controller().devices().size()));
  for (const controller::DeviceInfo& device : session.controller().devices()) {
    compiled->add_device_ids(device.id.value());
    compiled->add_addressable_device_ids(device.id.value());
  }
  compiled->set_fingerprint_value(absl::StrCat("reshard.", handle));
  compiled->set_ready_future_handle(session.NameFuture(0, ReadyFuture()));
  reply.Send(std::move(response));
}

void HandlePluginMetadata(const Reply& reply) {
  const tensorflow::StatusProto none = ToProto(absl::UnimplementedError("an order to the server has no such thing"));
  IfrtResponse response = reply.Empty();
  auto* metadata = response.mutable_loaded_executable_metadata_response();
  *metadata->mutable_parameter_layouts_error() = none;
  *metadata->mutable_output_layouts_error() = none;
  *metadata->mutable_output_memory_kinds()->mutable_status() = none;
  *metadata->mutable_donated_input_indices_error() = none;
  *metadata->mutable_compiled_memory_stats_error() = none;
  reply.Send(std::move(response));
}

void HandleExecutePlugin(Session& session, const ReshardOrder& order,
                         const wire::LoadedExecutableExecuteRequest& request, const Reply& reply) {
  auto execute = [&]() -> absl::StatusOr<std::vector<ArrayId>> {
    GW_ASSIGN_OR_RETURN(auto inputs, session.Arrays(request.args_handles()));
    auto outputs = Follow(session, order, inputs);
    if (!outputs.ok()) return session.CauseOf(outputs.status(), inputs);
    return outputs;
  };
  auto outputs = execute();
  if (!outputs.ok()) return FailExecution(session, request, outputs.status(), reply);
  IfrtResponse response = reply.Empty();
  auto* executed = response.mutable_loaded_executable_execute_response();
  for (size_t i = 0; i < outputs->size(); ++i) {
    AddOutput(**session.controller().Spec((*outputs)[i]), NameResult(session, request, i, (*outputs)[i]), executed);
  }
  if (request.result_status_handle() != 0 || request.execute_options().fill_status()) {
    AddStatus(session, request, AllReady(session, *outputs), executed);
  }
  reply.Send(std::move(response));
}

}  // namespace gangway::ifrt_proxy
