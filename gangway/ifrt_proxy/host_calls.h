// Calls of running programs to functions of the client. Either the client polls once per callback, runs its function
// and returns the results (LoadedHostCallbackPoll and LoadedHostCallbackReturn of the IFRT-proxy protocol); or it has a
// connection for calls (callback_server.h), and they are sent as they come.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gangway/controller/controller.h"
#include "gangway/ifrt_proxy/host_buffers.h"

namespace gangway::ifrt_proxy {

// Those of one session. Belongs to the controller's loop.
class HostCalls {
 public:
  struct Poll {
    uint64_t operand_buffer = 0;  // where the client looks for the operands
    // With the handle of the call, or without one when there will be no more.
    std::function<void(std::optional<uint64_t> execution)> answer;
    std::function<void(const absl::Status&)> fail;
  };

  HostCalls(std::shared_ptr<HostBuffers> buffers, std::function<uint64_t()> new_handle)
      : buffers_(std::move(buffers)), new_handle_(std::move(new_handle)) {}

  // Handles of a program's callbacks, in order. `functions`: what the client calls them on its connection.
  std::vector<uint64_t> Add(controller::ProgramId program, const std::vector<uint64_t>& functions);
  // Executions under way: a program that the client drops meanwhile is served until they are over.
  void Begin(controller::ProgramId program);
  void End(controller::ProgramId program);
  void Drop(controller::ProgramId program);

  void Call(controller::HostCall call);
  // Calls a function outside of any program; only with a connection.
  void Ask(uint64_t function, SharedBytes operands, std::function<void(absl::StatusOr<SharedBytes>)> answer);
  bool connected() const { return send_ != nullptr; }
  // Programs are loaded that may call the client.
  bool expected() const { return !programs_.empty(); }
  void Answer(uint64_t callback, Poll poll);
  // What a call gave. NOT_FOUND when there is none of that handle.
  absl::Status Return(uint64_t execution, absl::StatusOr<SharedBytes> results);
  // From now on calls are sent, by this. Those of one device are to run one after the other; those of several may wait
  // for one another. Nobody's device, -1, for functions that belong to no program.
  struct Outgoing {
    uint64_t execution = 0;
    uint64_t function = 0;
    int64_t device = -1;
    SharedBytes operands;
  };
  using Send = std::function<void(Outgoing)>;
  // Returns the connection's number; one that comes later takes its place.
  int Connect(Send send);
  // That connection broke: what the client executes will not return.
  void Disconnect(int connection);
  // Every call that waits is answered with `reason`.
  void Close(const absl::Status& reason);

 private:
  struct Callback {
    uint64_t function = 0;
    std::deque<controller::HostCall> calls;
    std::optional<Poll> poll;
  };
  struct Program {
    std::vector<uint64_t> callbacks;
    int running = 0;
    bool dropped = false;
  };
  void Match(Callback& callback);
  void SendCall(uint64_t function, controller::HostCall call);
  void ForgetIfOver(controller::ProgramId program);

  const std::shared_ptr<HostBuffers> buffers_;  // shared with RPC threads
  const std::function<uint64_t()> new_handle_;
  Send send_;            // null without a connection
  int connections_ = 0;  // that there were
  absl::flat_hash_map<controller::ProgramId, Program> programs_;
  absl::flat_hash_map<uint64_t, Callback> callbacks_;
  absl::flat_hash_map<uint64_t, controller::HostCall> executing_;  // by the client
};

}  // namespace gangway::ifrt_proxy
