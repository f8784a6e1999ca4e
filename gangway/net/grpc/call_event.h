// An event of a call under way. Internal to net/grpc.
#pragma once

#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "gangway/net/grpc/grpc_stream.h"

namespace gangway::net {

// Its own owner; holds what it is an event of until it is back. `telling` is held by whoever tells gRPC of it, and is
// free again before the event is handled.
template <typename Call>
class CallEvent final : public GrpcTag {
 public:
  using Method = void (Call::*)(bool ok);

  CallEvent(std::shared_ptr<Call> call, absl::Mutex& telling, Method method)
      : call_(std::move(call)), telling_(telling), method_(method) {}
  void Done(bool ok) override {
    const std::unique_ptr<CallEvent> self(this);
    { absl::MutexLock lock(&telling_); }
    ((*call_).*method_)(ok);
  }

 private:
  const std::shared_ptr<Call> call_;
  absl::Mutex& telling_;
  const Method method_;
};

}  // namespace gangway::net
