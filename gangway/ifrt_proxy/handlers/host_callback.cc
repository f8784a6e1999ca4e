#include <utility>

#include "gangway/ifrt_proxy/handlers/handlers.h"
#include "gangway/ifrt_proxy/protocol.h"

namespace gangway::ifrt_proxy {

void HandleHostCallbackPoll(Session& session, const wire::LoadedHostCallbackPollRequest& request, const Reply& reply) {
  HostCalls::Poll poll;
  poll.operand_buffer = request.operand_host_buffer_handle();
  poll.answer = [reply](std::optional<uint64_t> execution) {
    IfrtResponse response = reply.Empty();
    if (execution)
      response.mutable_loaded_host_callback_poll_response()->set_host_callback_execution_handle(*execution);
    reply.Send(std::move(response));
  };
  poll.fail = [reply](const absl::Status& status) { reply.Fail(status); };
  session.host_calls().Answer(request.loaded_host_callback_handle(), std::move(poll));
}

void HandleHostCallbackReturn(Session& session, const wire::LoadedHostCallbackReturnRequest& request,
                              const Reply& reply) {
  absl::StatusOr<SharedBytes> results =
      absl::InvalidArgumentError("a host callback returned neither results nor error");
  if (request.has_result_host_buffer_handle()) {
    results = session.host_buffers()->Take(request.result_host_buffer_handle());
  } else if (request.has_error()) {
    const absl::Status error = FromProto(request.error());
    results = error.ok() ? absl::InternalError("a host callback failed with OK") : error;
  }
  reply.OkOrFail(session.host_calls().Return(request.host_callback_execution_handle(), std::move(results)));
}

}  // namespace gangway::ifrt_proxy
