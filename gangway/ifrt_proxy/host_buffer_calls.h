// A client's calls about the host buffers of its session, answered by whoever stores them: no thread waits, and none is
// made for a call.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gangway/ifrt_proxy/host_buffers.h"
#include "grpcpp/support/server_callback.h"
#include "xla/python/ifrt_proxy/common/grpc_ifrt_service.pb.h"

namespace gangway::ifrt_proxy {

using LookupReactor = grpc::ServerWriteReactor<xla::ifrt::proxy::GrpcHostBufferLookupResponse>;

// Sends the bytes under the handle in chunks, now or when they are stored; an error when they fail to, when the session
// closes, or when nobody has promised or stored them by the deadline. `buffers` may be the error that there is no such
// session. The reactor owns itself.
LookupReactor* AnswerLookup(absl::StatusOr<std::shared_ptr<HostBuffers>> buffers, uint64_t handle, absl::Time deadline);

}  // namespace gangway::ifrt_proxy
