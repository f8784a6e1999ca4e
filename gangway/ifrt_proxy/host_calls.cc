#include "gangway/ifrt_proxy/host_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gangway::ifrt_proxy {

using controller::DeviceId;
using controller::HostCall;
using controller::ProgramId;

namespace {

absl::Status Disconnected() { return absl::UnavailableError("the client's connection for host callbacks broke"); }

}  // namespace

std::vector<uint64_t> HostCalls::Add(ProgramId program, const std::vector<uint64_t>& functions) {
  if (functions.empty()) return {};
  Program& added = programs_[program];
  for (uint64_t function : functions) {
    added.callbacks.push_back(new_handle_());
    callbacks_[added.callbacks.back()].function = function;
  }
  return added.callbacks;
}

void HostCalls::Begin(ProgramId program) {
  if (auto it = programs_.find(program); it != programs_.end()) ++it->second.running;
}

void HostCalls::End(ProgramId program) {
  if (auto it = programs_.find(program); it != programs_.end()) --it->second.running;
  ForgetIfOver(program);
}

void HostCalls::Drop(ProgramId program) {
  if (auto it = programs_.find(program); it != programs_.end()) it->second.dropped = true;
  ForgetIfOver(program);
}

void HostCalls::ForgetIfOver(ProgramId program) {
  auto it = programs_.find(program);
  if (it == programs_.end() || !it->second.dropped || it->second.running > 0) return;
  std::vector<Callback> gone;
  for (uint64_t handle : it->second.callbacks) {
    auto callback = callbacks_.find(handle);
    gone.push_back(std::move(callback->second));
    callbacks_.erase(callback);
  }
  programs_.erase(it);
  for (Callback& callback : gone) {
    for (HostCall& call : callback.calls) call.answer(absl::CancelledError("the client has dropped the program"));
    if (callback.poll) callback.poll->answer(std::nullopt);
  }
}

void HostCalls::Call(HostCall call) {
  auto program = programs_.find(call.program);
  if (program == programs_.end() || call.callback < 0 ||
      call.callback >= static_cast<int>(program->second.callbacks.size())) {
    return call.answer(absl::NotFoundError(absl::StrCat("the program has no host callback ", call.callback)));
  }
  Callback& callback = callbacks_.at(program->second.callbacks[call.callback]);
  if (send_) return SendCall(callback.function, std::move(call));
  // Its device would wait for good: whoever had a connection does not poll.
  if (connections_ > 0 && !callback.poll) return call.answer(Disconnected());
  callback.calls.push_back(std::move(call));
  Match(callback);
}

void HostCalls::Ask(uint64_t function, SharedBytes operands, std::function<void(absl::StatusOr<SharedBytes>)> answer) {
  if (!connected()) return answer(absl::UnavailableError("the client has no connection for host callbacks"));
  SendCall(function, {ProgramId(), DeviceId(-1), 0, std::move(operands), std::move(answer)});
}

void HostCalls::SendCall(uint64_t function, HostCall call) {
  const uint64_t execution = new_handle_();
  Outgoing outgoing = {execution, function, call.device.value(), std::exchange(call.operands, nullptr)};
  executing_.emplace(execution, std::move(call));
  send_(std::move(outgoing));
}

int HostCalls::Connect(Send send) {
  Disconnect(connections_);
  send_ = std::move(send);
  ++connections_;
  for (auto& [handle, callback] : callbacks_) {
    for (HostCall& call : std::exchange(callback.calls, {})) SendCall(callback.function, std::move(call));
  }
  return connections_;
}

void HostCalls::Disconnect(int connection) {
  if (!send_ || connection != connections_) return;
  send_ = nullptr;
  for (auto& [handle, call] : std::exchange(executing_, {})) call.answer(Disconnected());
}

void HostCalls::Answer(uint64_t handle, Poll poll) {
  auto it = callbacks_.find(handle);
  if (it == callbacks_.end()) return poll.answer(std::nullopt);  // its program is gone: the client stops polling
  if (it->second.poll) {
    return poll.fail(absl::FailedPreconditionError(absl::StrCat("host callback ", handle, " is polled already")));
  }
  it->second.poll = std::move(poll);
  Match(it->second);
}

void HostCalls::Match(Callback& callback) {
  if (callback.calls.empty() || !callback.poll) return;
  const Poll poll = *std::exchange(callback.poll, std::nullopt);
  HostCall call = std::move(callback.calls.front());
  callback.calls.pop_front();
  if (absl::Status stored = buffers_->Store(poll.operand_buffer, call.operands); !stored.ok()) {
    call.answer(stored);
    return poll.fail(stored);
  }
  call.operands = nullptr;
  const uint64_t execution = new_handle_();
  executing_.emplace(execution, std::move(call));
  poll.answer(execution);
}

absl::Status HostCalls::Return(uint64_t execution, absl::StatusOr<SharedBytes> results) {
  auto it = executing_.find(execution);
  if (it == executing_.end()) {
    return absl::NotFoundError(absl::StrCat("no host callback runs under handle ", execution));
  }
  const HostCall call = std::move(it->second);
  executing_.erase(it);
  call.answer(std::move(results));
  return absl::OkStatus();
}

void HostCalls::Close(const absl::Status& reason) {
  send_ = nullptr;
  programs_.clear();
  auto callbacks = std::exchange(callbacks_, {});
  auto executing = std::exchange(executing_, {});
  for (auto& [handle, callback] : callbacks) {
    for (HostCall& call : callback.calls) call.answer(reason);
  }
  for (auto& [handle, call] : executing) call.answer(reason);
}

}  // namespace gangway::ifrt_proxy
