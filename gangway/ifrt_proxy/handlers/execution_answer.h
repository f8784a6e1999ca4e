// What the client hears of an execution, of a program or of an order to the server.
#pragma once

#include "absl/status/status.h"
#include "gangway/controller/controller.h"
#include "gangway/ifrt_proxy/session.h"
#include "xla/python/ifrt_proxy/common/ifrt_service.pb.h"

namespace gangway::ifrt_proxy {

using xla::ifrt::proxy::LoadedExecutableExecuteRequest;
using xla::ifrt::proxy::LoadedExecutableExecuteResponse;

// The results that the client has named already, and its answer, say why there are none.
void FailExecution(Session& session, const LoadedExecutableExecuteRequest& request, const absl::Status& status,
                   const Reply& reply);

// The handle of result `index`: the one that the client gave it, otherwise a new one.
uint64_t NameResult(Session& session, const LoadedExecutableExecuteRequest& request, size_t index,
                    controller::ArrayId result);

// Tells the client of a result that it could not name.
void AddOutput(const controller::ArraySpec& spec, uint64_t handle, LoadedExecutableExecuteResponse* executed);

// The client waits for `done` under a handle. It aborts when told one that it did not leave to the server.
void AddStatus(Session& session, const LoadedExecutableExecuteRequest& request, Future<Unit> done,
               LoadedExecutableExecuteResponse* executed);

}  // namespace gangway::ifrt_proxy
