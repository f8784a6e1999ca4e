#include "gangway/ifrt_proxy/handlers/execution_answer.h"

#include <utility>

#include "gangway/ifrt_proxy/protocol.h"

namespace gangway::ifrt_proxy {

void FailExecution(Session& session, const LoadedExecutableExecuteRequest& request, const absl::Status& status,
                   const Reply& reply) {
  for (uint64_t handle : request.result_array_handle()) session.PoisonArray(handle, status);
  if (request.result_status_handle() != 0) {
    session.NameFuture(request.result_status_handle(), Future<Unit>(absl::StatusOr<Unit>(status)));
  }
  reply.Fail(status);
}

uint64_t NameResult(Session& session, const LoadedExecutableExecuteRequest& request, size_t index,
                    controller::ArrayId result) {
  const auto& named = request.result_array_handle();
  return session.NameArray(static_cast<int>(index) < named.size() ? named[static_cast<int>(index)] : 0, result);
}

void AddOutput(const controller::ArraySpec& spec, uint64_t handle, LoadedExecutableExecuteResponse* executed) {
  auto* output = executed->add_outputs();
  *output->mutable_dtype() = ToProto(spec.dtype);
  for (int64_t dim : spec.dims) output->mutable_shape()->add_dims(dim);
  *output->mutable_sharding() = ShardingOf(spec);
  output->set_array_handle(handle);
}

void AddStatus(Session& session, const LoadedExecutableExecuteRequest& request, Future<Unit> done,
               LoadedExecutableExecuteResponse* executed) {
  const uint64_t handle = session.NameFuture(request.result_status_handle(), std::move(done));
  if (request.result_status_handle() == 0) executed->set_status_handle(handle);
}

}  // namespace gangway::ifrt_proxy
