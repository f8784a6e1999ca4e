// One client's session: its handles and what they mean, and the requests of its stream in order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/base/clock.h"
#include "gangway/base/future.h"
#include "gangway/controller/controller.h"
#include "gangway/ifrt_proxy/host_buffers.h"
#include "gangway/ifrt_proxy/host_calls.h"
#include "gangway/ifrt_proxy/plugin_program.h"
#include "xla/python/ifrt_proxy/common/ifrt_service.pb.h"

namespace gangway::ifrt_proxy {

using xla::ifrt::proxy::IfrtRequest;
using xla::ifrt::proxy::IfrtResponse;

// Answers one request, exactly once, now or later. Copyable; calls after the session has closed do nothing.
class Reply {
 public:
  // `urgent`: the client may be waiting for it; the others may wait a little for company.
  using Sink = std::function<void(IfrtResponse, bool urgent)>;
  // Where a session's answers go, and how many there are still to be.
  struct Answers {
    const Sink sink;
    int64_t due = 0;
  };
  // One more is due.
  Reply(std::shared_ptr<Answers> answers, const IfrtRequest& request);

  // `response` needs its case set; the operation id is filled in here.
  void Send(IfrtResponse response) const;
  // An empty response of the request's kind.
  void Ok() const { Send(Empty()); }
  // The status and nothing else.
  void Fail(const absl::Status& status) const;
  void OkOrFail(const absl::Status& status) const { status.ok() ? Ok() : Fail(status); }
  IfrtResponse Empty() const;

 private:
  std::shared_ptr<Answers> answers_;  // shared with all replies of the session
  uint64_t operation_;
  int response_field_;
  bool urgent_;
};

// What one session may have of each: far more than one does that means well.
struct SessionBounds {
  int64_t unanswered = 1 << 18;  // requests whose answers wait for something
  size_t futures = 1 << 20;
  size_t executables = 1 << 16;
};

// A loaded executable of the client. Programs are immutable and shared with the controller.
struct Executable {
  controller::ProgramId id;
  std::shared_ptr<const controller::Program> program;  // null until compiled
  std::vector<uint64_t> host_callbacks;                // what the client calls them
  // As it came, should the client want to keep the program.
  std::shared_ptr<const xla::ifrt::proxy::CompileRequest> request = nullptr;
  std::string fingerprint = "";                           // for the client
  std::shared_ptr<const ReshardOrder> reshard = nullptr;  // in place of a program
};

// Owned by the controller's loop: every method but the constructor runs there. Requests take effect in the order sent;
// one that needs a host buffer which has not arrived holds up those behind it, up to a deadline.
class Session : public std::enable_shared_from_this<Session> {
 public:
  struct Options {
    uint64_t session_id = 0;  // for people
    controller::SessionInfo info;
    absl::Duration host_buffer_deadline = absl::Minutes(2);
    // Where the client may open a connection for calls to its functions (callback_server.h), and what it has to say.
    int callback_port = 0;
    uint64_t callback_secret = 0;
    SessionBounds bounds;
    // What calls beside the stream name the session by. They show nothing else, so nobody may guess it.
    uint64_t key = 0;
  };
  Session(controller::Controller& controller, const Clock& clock, std::shared_ptr<HostBuffers> host_buffers,
          Options options, Reply::Sink sink);
  ~Session();

  void Open();
  void Handle(std::unique_ptr<IfrtRequest> request);
  // Whether the next request would have to wait for a host buffer that an earlier one needs; `on_going_on` is called
  // when that is over.
  bool waits() const { return awaited_.has_value() && !closed_; }
  void OnGoingOn(std::function<void()> on_going_on) { on_going_on_ = std::move(on_going_on); }
  // The controller does not let it in, and the client has heard of it or did not want to.
  bool refused() const { return told_refusal_; }
  // Gives up on a host buffer that the queue has waited for too long: its request fails, those behind it go on. A
  // client that is not let in and does not ask for anything, so that it could be told, is refused without a word.
  void ExpireWait(absl::Time now);
  void Close();

  // --- for the handlers ---
  controller::Controller& controller() { return controller_; }
  controller::SessionId id() const { return id_; }
  uint64_t session_id() const { return options_.session_id; }
  const Options& options() const { return options_; }
  const std::shared_ptr<HostBuffers>& host_buffers() { return host_buffers_; }
  HostCalls& host_calls() { return host_calls_; }
  // A handle the server chooses; never one a client would.
  uint64_t NewHandle() { return next_handle_++; }

  // NOT_FOUND naming the handle when unknown.
  absl::StatusOr<controller::ArrayId> Array(uint64_t handle) const;
  absl::StatusOr<std::vector<controller::ArrayId>> Arrays(
      const google::protobuf::RepeatedField<uint64_t>& handles) const;
  // Names `array` by a handle: the client's, or one of ours when it is 0. A handle named anew releases what it meant.
  uint64_t NameArray(uint64_t handle, controller::ArrayId array);
  // Names an array whose every use fails; for results of requests that failed at once.
  // So are those for which there is no room: the handle names nothing.
  void PoisonArray(uint64_t handle, const absl::Status& error);
  void ForgetArray(uint64_t handle);
  // Why something could not be made of `arrays`: the error one of them is poisoned with, or else `status`. An array
  // whose maker was refused has neither shape nor shards, so what fails first is rarely the cause.
  absl::Status CauseOf(const absl::Status& status, absl::Span<const controller::ArrayId> arrays);

  // Beyond the session's bound it is not kept: whoever takes it hears of that.
  uint64_t NameFuture(uint64_t handle, Future<Unit> future);
  absl::StatusOr<Future<Unit>> TakeFuture(uint64_t handle);

  // RESOURCE_EXHAUSTED when it would be one too many.
  absl::Status CheckExecutables() const;
  uint64_t NameExecutable(Executable executable);
  absl::StatusOr<Executable*> FindExecutable(uint64_t handle);
  // Any of that fingerprint.
  absl::StatusOr<Executable*> FindExecutable(absl::string_view fingerprint);
  void ForgetExecutable(uint64_t handle);

 private:
  void Drain();
  void AwaitHostBuffer(uint64_t handle);
  void Dispatch(const IfrtRequest& request);
  // A handle that names nothing: NOT_FOUND, or what the session once had no room for.
  absl::Status Unknown(absl::string_view kind, uint64_t handle) const;

  controller::Controller& controller_;
  const Clock& clock_;
  const std::shared_ptr<HostBuffers> host_buffers_;  // shared with RPC threads that outlive the session
  const Options options_;
  const std::shared_ptr<Reply::Answers> answers_;
  absl::Status admission_;  // whether the controller lets it in
  absl::Time opened_;
  bool told_refusal_ = false;
  std::function<void()> on_going_on_ = [] {};  // set before the first request
  controller::SessionId id_;
  bool closed_ = false;
  // The host buffer that the first request of the queue waits for, and since when.
  std::optional<uint64_t> awaited_;
  absl::Time awaited_since_;
  std::deque<std::unique_ptr<IfrtRequest>> queue_;
  absl::flat_hash_map<uint64_t, controller::ArrayId> arrays_;
  absl::flat_hash_map<uint64_t, Future<Unit>> futures_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Executable>> executables_;
  absl::Status no_room_;  // why the last handle that should name something does not
  uint64_t next_handle_ = uint64_t{1} << 62;
  HostCalls host_calls_;
};

}  // namespace gangway::ifrt_proxy
