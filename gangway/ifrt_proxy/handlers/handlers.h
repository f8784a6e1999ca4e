// One function per request of the protocol. Each runs on the controller's loop and sees to it that `reply` is answered
// once.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "gangway/ifrt_proxy/session.h"
#include "xla/python/ifrt_proxy/common/ifrt_service.pb.h"

namespace gangway::ifrt_proxy {

namespace wire = xla::ifrt::proxy;

// client.cc: what the client is connected to
void HandleInit(Session& session, const Reply& reply);
void HandleDefaultDeviceAssignment(Session& session, const wire::GetDefaultDeviceAssignmentRequest& request,
                                   const Reply& reply);
void HandleDefaultLayout(const wire::GetDefaultLayoutRequest& request, const Reply& reply);
void HandleCheckFuture(Session& session, const wire::CheckFutureRequest& request, const Reply& reply);

// array.cc: arrays made, looked at and dropped
void HandleCheckValueReady(Session& session, const wire::CheckValueReadyRequest& request, const Reply& reply);
void HandleMakeErrorArrays(Session& session, const wire::MakeErrorArraysRequest& request, const Reply& reply);
void HandleDeleteArrays(Session& session, const wire::DeleteArrayRequest& request, const Reply& reply);
void HandleIsArrayDeleted(Session& session, const wire::IsArrayDeletedRequest& request, const Reply& reply);
void HandleDestructArrays(Session& session, const wire::DestructArrayRequest& request, const Reply& reply);

// transfer.cc: bytes between the client and arrays
void HandleMakeArray(Session& session, const wire::MakeArrayFromHostBufferRequest& request, const Reply& reply);
void HandleMakeArrays(Session& session, const wire::MakeArraysFromHostBufferShardsRequest& request, const Reply& reply);
void HandleCopyToHost(Session& session, const wire::CopyToHostBufferRequest& request, const Reply& reply);

// rearrange.cc: arrays from arrays
// As many specs as arrays, one of each.
absl::StatusOr<std::vector<controller::ArrayId>> Resharded(Session& session,
                                                           const std::vector<controller::ArrayId>& inputs,
                                                           std::vector<controller::ArraySpec> specs, bool donate);
void HandleAssemble(Session& session, const wire::AssembleArrayFromSingleDeviceArraysRequest& request,
                    const Reply& reply);
void HandleDisassemble(Session& session, const wire::DisassembleIntoSingleDeviceArraysRequest& request,
                       const Reply& reply);
void HandleRemap(Session& session, const wire::RemapArraysRequest& request, const Reply& reply);
void HandleBitcast(Session& session, const wire::BitcastArraysRequest& request, const Reply& reply);
void HandleReshard(Session& session, const wire::ReshardArraysRequest& request, const Reply& reply);
void HandleCopyArrays(Session& session, const wire::CopyArraysRequest& request, const Reply& reply);
void HandleFullyReplicatedShard(Session& session, const wire::FullyReplicatedShardRequest& request, const Reply& reply);

// executable.cc: programs
void HandleCompile(Session& session, const wire::CompileRequest& request, const Reply& reply);
void HandleExecutableMetadata(Session& session, const wire::LoadedExecutableMetadataRequest& request,
                              const Reply& reply);
void HandleExecute(Session& session, const wire::LoadedExecutableExecuteRequest& request, const Reply& reply);
void HandleFetchExecuteResult(Session& session, const wire::LoadedExecutableFetchExecuteResultRequest& request,
                              const Reply& reply);
void HandleCostAnalysis(Session& session, const wire::LoadedExecutableCostAnalysisRequest& request, const Reply& reply);
void HandleProgramText(Session& session, const wire::LoadedExecutableHumanReadableProgramTextRequest& request,
                       const Reply& reply);
void HandleDeleteExecutable(Session& session, const wire::LoadedExecutableDeleteRequest& request, const Reply& reply);
void HandleIsExecutableDeleted(Session& session, const wire::LoadedExecutableIsDeletedRequest& request,
                               const Reply& reply);
void HandleDestructExecutable(Session& session, const wire::LoadedExecutableDestructRequest& request,
                              const Reply& reply);

// plugin.cc: programs that are orders to the server
void HandleCompilePlugin(Session& session, const wire::CompileRequest& request, const Reply& reply);
void HandlePluginMetadata(const Reply& reply);
void HandleExecutePlugin(Session& session, const ReshardOrder& order,
                         const wire::LoadedExecutableExecuteRequest& request, const Reply& reply);

// host_callback.cc: functions of the client, called by its programs
void HandleHostCallbackPoll(Session& session, const wire::LoadedHostCallbackPollRequest& request, const Reply& reply);
void HandleHostCallbackReturn(Session& session, const wire::LoadedHostCallbackReturnRequest& request,
                              const Reply& reply);

}  // namespace gangway::ifrt_proxy
