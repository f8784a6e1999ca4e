#include <memory>

#include "gangway/ifrt_proxy/handlers/handlers.h"
#include "gangway/ifrt_proxy/protocol.h"

namespace gangway::ifrt_proxy {

void HandleCheckValueReady(Session& session, const wire::CheckValueReadyRequest& request, const Reply& reply) {
  auto arrays = session.Arrays(request.value_handles());
  if (!arrays.ok()) return reply.Fail(arrays.status());
  // Answers when the last is ready, with the first error seen.
  struct Pending {
    Reply reply;
    size_t left;
    absl::Status status;
  };
  auto pending = std::make_shared<Pending>(Pending{reply, arrays->size(), absl::OkStatus()});
  if (arrays->empty()) return reply.Ok();
  for (controller::ArrayId array : *arrays) {
    session.controller().Ready(array).OnReady([pending](const absl::StatusOr<Unit>& outcome) {
      pending->status.Update(outcome.status());
      if (--pending->left == 0) pending->reply.OkOrFail(pending->status);
    });
  }
}

void HandleMakeErrorArrays(Session& session, const wire::MakeErrorArraysRequest& request, const Reply& reply) {
  IfrtResponse response = reply.Empty();
  absl::Status error = FromProto(request.error());
  if (error.ok()) return reply.Fail(absl::InvalidArgumentError("error arrays need an error"));
  for (int i = 0; i < request.array_specs_size(); ++i) {
    auto spec = MakeArraySpec(request.array_specs(i));
    if (!spec.ok()) return reply.Fail(spec.status());
    uint64_t handle = i < request.array_handles_size() ? request.array_handles(i) : 0;
    auto array = session.controller().MakeErrorArray(session.id(), *std::move(spec), error);
    if (!array.ok()) return reply.Fail(array.status());
    response.mutable_make_error_arrays_response()->add_array_handles(session.NameArray(handle, *array));
  }
  reply.Send(std::move(response));
}

void HandleDeleteArrays(Session& session, const wire::DeleteArrayRequest& request, const Reply& reply) {
  auto arrays = session.Arrays(request.array_handle());
  if (!arrays.ok()) return reply.Fail(arrays.status());
  absl::Status status;
  for (controller::ArrayId array : *arrays) status.Update(session.controller().Delete(array));
  if (!status.ok()) return reply.Fail(status);
  IfrtResponse response = reply.Empty();
  response.mutable_delete_array_response()->set_deletion_future_handle(session.NameFuture(0, ReadyFuture()));
  reply.Send(std::move(response));
}

void HandleIsArrayDeleted(Session& session, const wire::IsArrayDeletedRequest& request, const Reply& reply) {
  auto array = session.Array(request.array_handle());
  if (!array.ok()) return reply.Fail(array.status());
  auto deleted = session.controller().IsDeleted(*array);
  if (!deleted.ok()) return reply.Fail(deleted.status());
  IfrtResponse response = reply.Empty();
  response.mutable_is_array_deleted_response()->set_deleted(*deleted);
  reply.Send(std::move(response));
}

void HandleDestructArrays(Session& session, const wire::DestructArrayRequest& request, const Reply& reply) {
  for (uint64_t handle : request.array_handle()) session.ForgetArray(handle);
  reply.Ok();
}

}  // namespace gangway::ifrt_proxy
