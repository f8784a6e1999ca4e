#include "gangway/ifrt_proxy/session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/ifrt_proxy/handlers/handlers.h"
#include "gangway/ifrt_proxy/protocol.h"
#include "spdlog/spdlog.h"

namespace gangway::ifrt_proxy {
namespace {

// Host buffers a request consumes and that must have arrived before it takes effect.
std::vector<uint64_t> NeededHostBuffers(const IfrtRequest& request) {
  std::vector<uint64_t> handles;
  if (request.has_make_array_from_host_buffer_request()) {
    handles.push_back(request.make_array_from_host_buffer_request().host_buffer_handle());
  }
  if (const auto& returned = request.loaded_host_callback_return_request(); returned.has_result_host_buffer_handle()) {
    handles.push_back(returned.result_host_buffer_handle());
  }
  for (const auto& spec : request.make_arrays_from_host_buffer_shards_request().specs()) {
    for (const auto& buffer : spec.host_buffers()) handles.push_back(buffer.host_buffer_handle());
  }
  return handles;
}

// Of a message, less what its own number takes: gRPC's streams abort on one that protobuf does not write.
constexpr size_t kMostBytes = INT32_MAX - 64;
constexpr absl::Duration kRefusedWithin = absl::Seconds(30);

// Nobody waits for the answer: the client has named the results itself and goes on.
bool IsSilent(const IfrtRequest& request) {
  return request.loaded_executable_execute_request().result_array_handle_size() > 0 ||
         request.disassemble_into_single_device_arrays_request().result_handles_size() > 0 ||
         request.fully_replicated_shard_request().result_handle() != 0 ||
         request.copy_arrays_request().result_handles_size() > 0 || request.has_destruct_array_request();
}

// Its answer may have to wait for something that happens later.
bool MayWait(const IfrtRequest& request) {
  return request.has_check_future_request() || request.has_check_value_ready_request() ||
         request.has_copy_to_host_buffer_request() || request.has_compile_request() ||
         request.has_loaded_executable_fetch_execute_result_request() ||
         request.has_loaded_host_callback_poll_request();
}

}  // namespace

Reply::Reply(std::shared_ptr<Answers> answers, const IfrtRequest& request)
    : answers_(std::move(answers)),
      operation_(request.request_metadata().op_id()),
      // A response has the field number of its request.
      response_field_(request.request_case()),
      urgent_(!IsSilent(request)) {
  ++answers_->due;
}

void Reply::Send(IfrtResponse response) const {
  if (const size_t bytes = response.ByteSizeLong(); bytes > kMostBytes) {
    return Fail(absl::ResourceExhaustedError(absl::StrCat("an answer of ", bytes, " bytes: no message holds so much")));
  }
  response.mutable_response_metadata()->set_op_id(operation_);
  --answers_->due;
  answers_->sink(std::move(response), urgent_);
}

IfrtResponse Reply::Empty() const {
  IfrtResponse response;
  const auto* field = IfrtResponse::descriptor()->FindFieldByNumber(response_field_);
  if (field != nullptr && response_field_ != 0) response.GetReflection()->MutableMessage(&response, field);
  return response;
}

void Reply::Fail(const absl::Status& status) const {
  // Without a case: clients (jaxlib 0.10) look at the status only where the response of the kind they wait for is
  // missing.
  IfrtResponse response;
  *response.mutable_response_metadata()->mutable_status() = ToProto(status);
  Send(std::move(response));
}

Session::Session(controller::Controller& controller, const Clock& clock, std::shared_ptr<HostBuffers> host_buffers,
                 Options options, Reply::Sink sink)
    : controller_(controller),
      clock_(clock),
      host_buffers_(std::move(host_buffers)),
      options_(std::move(options)),
      answers_(std::make_shared<Reply::Answers>(Reply::Answers{std::move(sink)})),
      host_calls_(host_buffers_, [this] { return NewHandle(); }) {}

Session::~Session() = default;

void Session::Open() {
  opened_ = clock_.Now();
  controller::SessionInfo info = options_.info;
  info.on_host_call = [weak = weak_from_this()](controller::HostCall call) {
    std::shared_ptr<Session> self = weak.lock();
    if (self == nullptr || self->closed_) return call.answer(absl::CancelledError("the client is gone"));
    self->host_calls_.Call(std::move(call));
  };
  admission_ = controller_.Admit(&info);
  if (!admission_.ok()) {
    host_buffers_->Close();  // it has no room for anything
    return spdlog::warn("{}", std::string(admission_.message()));
  }
  host_buffers_->CountIn(info.host_bytes);
  id_ = controller_.OpenSession(std::move(info));
}

void Session::Close() {
  if (std::exchange(closed_, true)) return;
  host_buffers_->Close();
  queue_.clear();
  host_calls_.Close(absl::CancelledError(absl::StrCat("the client of session ", options_.session_id, " is gone")));
  arrays_.clear();
  futures_.clear();
  executables_.clear();
  if (admission_.ok()) controller_.CloseSession(id_);
}

void Session::Handle(std::unique_ptr<IfrtRequest> request) {
  GW_CHECK(controller_.loop().InLoop());
  if (closed_) return;
  queue_.push_back(std::move(request));
  Drain();
}

void Session::Drain() {
  while (!closed_ && !awaited_.has_value() && !queue_.empty()) {
    for (uint64_t handle : NeededHostBuffers(*queue_.front())) {
      if (host_buffers_->Contains(handle)) continue;
      AwaitHostBuffer(handle);
      return;
    }
    std::unique_ptr<IfrtRequest> request = std::move(queue_.front());
    queue_.pop_front();
    Dispatch(*request);
  }
}

void Session::AwaitHostBuffer(uint64_t handle) {
  awaited_ = handle;
  awaited_since_ = clock_.Now();
  host_buffers_->WhenStored(handle, [weak = weak_from_this(), handle, &loop = controller_.loop()] {
    loop.Post([weak, handle] {
      std::shared_ptr<Session> self = weak.lock();
      if (self == nullptr || self->awaited_ != handle) return;
      self->awaited_.reset();
      self->Drain();
      if (!self->waits()) self->on_going_on_();
    });
  });
}

void Session::ExpireWait(absl::Time now) {
  if (!admission_.ok() && !told_refusal_ && !closed_ && now - opened_ >= kRefusedWithin) {
    told_refusal_ = true;
    on_going_on_();
  }
  if (!awaited_.has_value() || now - awaited_since_ < options_.host_buffer_deadline) return;
  // The error takes the buffer's place, so the request that wants it reports it.
  host_buffers_->StoreError(
      *awaited_, absl::DeadlineExceededError(absl::StrCat("session ", options_.session_id, ": host buffer ", *awaited_,
                                                          " did not arrive within ",
                                                          absl::FormatDuration(options_.host_buffer_deadline))));
}

void Session::Dispatch(const IfrtRequest& request) {
  const bool too_many = answers_->due >= options_.bounds.unanswered && MayWait(request);
  Reply reply(answers_, request);
  // Of a session that ends before its first answer the client could only tell that it ended.
  if (!admission_.ok()) {
    told_refusal_ = true;
    return reply.Fail(admission_);
  }
  if (too_many) {
    no_room_ = absl::ResourceExhaustedError(absl::StrCat(
        "session ", options_.session_id, ": already ", options_.bounds.unanswered, " requests wait for their answers"));
    return reply.Fail(no_room_);
  }
  if (spdlog::should_log(spdlog::level::trace)) {
    spdlog::trace("session {}: {}", options_.session_id, request.ShortDebugString().substr(0, 400));
  }
  switch (request.request_case()) {
    case IfrtRequest::kInitRequest:
      return HandleInit(*this, reply);
    case IfrtRequest::kGetDefaultDeviceAssignmentRequest:
      return HandleDefaultDeviceAssignment(*this, request.get_default_device_assignment_request(), reply);
    case IfrtRequest::kGetDefaultLayoutRequest:
      return HandleDefaultLayout(request.get_default_layout_request(), reply);
    case IfrtRequest::kCheckFutureRequest:
      return HandleCheckFuture(*this, request.check_future_request(), reply);
    case IfrtRequest::kCheckValueReadyRequest:
      return HandleCheckValueReady(*this, request.check_value_ready_request(), reply);
    case IfrtRequest::kMakeArrayFromHostBufferRequest:
      return HandleMakeArray(*this, request.make_array_from_host_buffer_request(), reply);
    case IfrtRequest::kMakeArraysFromHostBufferShardsRequest:
      return HandleMakeArrays(*this, request.make_arrays_from_host_buffer_shards_request(), reply);
    case IfrtRequest::kMakeErrorArraysRequest:
      return HandleMakeErrorArrays(*this, request.make_error_arrays_request(), reply);
    case IfrtRequest::kAssembleArrayFromSingleDeviceArraysRequest:
      return HandleAssemble(*this, request.assemble_array_from_single_device_arrays_request(), reply);
    case IfrtRequest::kDisassembleIntoSingleDeviceArraysRequest:
      return HandleDisassemble(*this, request.disassemble_into_single_device_arrays_request(), reply);
    case IfrtRequest::kRemapArraysRequest:
      return HandleRemap(*this, request.remap_arrays_request(), reply);
    case IfrtRequest::kBitcastArraysRequest:
      return HandleBitcast(*this, request.bitcast_arrays_request(), reply);
    case IfrtRequest::kReshardArraysRequest:
      return HandleReshard(*this, request.reshard_arrays_request(), reply);
    case IfrtRequest::kCopyToHostBufferRequest:
      return HandleCopyToHost(*this, request.copy_to_host_buffer_request(), reply);
    case IfrtRequest::kCopyArraysRequest:
      return HandleCopyArrays(*this, request.copy_arrays_request(), reply);
    case IfrtRequest::kFullyReplicatedShardRequest:
      return HandleFullyReplicatedShard(*this, request.fully_replicated_shard_request(), reply);
    case IfrtRequest::kDeleteArrayRequest:
      return HandleDeleteArrays(*this, request.delete_array_request(), reply);
    case IfrtRequest::kIsArrayDeletedRequest:
      return HandleIsArrayDeleted(*this, request.is_array_deleted_request(), reply);
    case IfrtRequest::kDestructArrayRequest:
      return HandleDestructArrays(*this, request.destruct_array_request(), reply);
    case IfrtRequest::kCompileRequest:
      return HandleCompile(*this, request.compile_request(), reply);
    case IfrtRequest::kLoadedExecutableMetadataRequest:
      return HandleExecutableMetadata(*this, request.loaded_executable_metadata_request(), reply);
    case IfrtRequest::kLoadedExecutableExecuteRequest:
      return HandleExecute(*this, request.loaded_executable_execute_request(), reply);
    case IfrtRequest::kLoadedExecutableFetchExecuteResultRequest:
      return HandleFetchExecuteResult(*this, request.loaded_executable_fetch_execute_result_request(), reply);
    case IfrtRequest::kLoadedExecutableCostAnalysisRequest:
      return HandleCostAnalysis(*this, request.loaded_executable_cost_analysis_request(), reply);
    case IfrtRequest::kLoadedExecutableHumanReadableProgramTextRequest:
      return HandleProgramText(*this, request.loaded_executable_human_readable_program_text_request(), reply);
    case IfrtRequest::kLoadedExecutableDeleteRequest:
      return HandleDeleteExecutable(*this, request.loaded_executable_delete_request(), reply);
    case IfrtRequest::kLoadedExecutableIsDeletedRequest:
      return HandleIsExecutableDeleted(*this, request.loaded_executable_is_deleted_request(), reply);
    case IfrtRequest::kLoadedExecutableDestructRequest:
      return HandleDestructExecutable(*this, request.loaded_executable_destruct_request(), reply);
    case IfrtRequest::kLoadedHostCallbackPollRequest:
      return HandleHostCallbackPoll(*this, request.loaded_host_callback_poll_request(), reply);
    case IfrtRequest::kLoadedHostCallbackReturnRequest:
      return HandleHostCallbackReturn(*this, request.loaded_host_callback_return_request(), reply);
    default: {
      const auto* field = IfrtRequest::descriptor()->FindFieldByNumber(request.request_case());
      return reply.Fail(absl::UnimplementedError(
          absl::StrCat("gangway does not serve ", field != nullptr ? field->name() : "a request it does not know")));
    }
  }
}

absl::Status Session::Unknown(absl::string_view kind, uint64_t handle) const {
  const std::string unknown = absl::StrCat("session ", options_.session_id, ": no ", kind, " with handle ", handle);
  if (no_room_.ok()) return absl::NotFoundError(unknown);
  return Annotate(no_room_, absl::StrCat(unknown, "; there was no room for all"));
}

absl::StatusOr<controller::ArrayId> Session::Array(uint64_t handle) const {
  auto it = arrays_.find(handle);
  if (it == arrays_.end()) return Unknown("array", handle);
  return it->second;
}

absl::StatusOr<std::vector<controller::ArrayId>> Session::Arrays(
    const google::protobuf::RepeatedField<uint64_t>& handles) const {
  std::vector<controller::ArrayId> arrays;
  arrays.reserve(handles.size());
  for (uint64_t handle : handles) {
    GW_ASSIGN_OR_RETURN(controller::ArrayId array, Array(handle));
    arrays.push_back(array);
  }
  return arrays;
}

uint64_t Session::NameArray(uint64_t handle, controller::ArrayId array) {
  if (handle == 0) handle = NewHandle();
  ForgetArray(handle);
  arrays_[handle] = array;
  return handle;
}

void Session::PoisonArray(uint64_t handle, const absl::Status& error) {
  if (handle == 0) return;
  auto array = controller_.MakeErrorArray(id_, {}, error);
  if (array.ok()) {
    NameArray(handle, *array);
  } else {
    ForgetArray(handle);
    no_room_ = array.status();
  }
}

void Session::ForgetArray(uint64_t handle) {
  auto it = arrays_.find(handle);
  if (it == arrays_.end()) return;
  controller_.Release(it->second);
  arrays_.erase(it);
}

absl::Status Session::CauseOf(const absl::Status& status, absl::Span<const controller::ArrayId> arrays) {
  for (controller::ArrayId array : arrays) {
    Future<Unit> ready = controller_.Ready(array);
    if (!ready.IsReady()) continue;
    absl::Status error = ready.Await(absl::InfinitePast(), "an array that is ready").status();
    if (!error.ok()) return error;
  }
  return status;
}

uint64_t Session::NameFuture(uint64_t handle, Future<Unit> future) {
  if (handle == 0) handle = NewHandle();
  if (futures_.size() < options_.bounds.futures) {
    futures_.insert_or_assign(handle, std::move(future));
  } else {
    no_room_ = absl::ResourceExhaustedError(
        absl::StrCat("session ", options_.session_id, ": already ", futures_.size(), " futures that nobody asks for"));
  }
  return handle;
}

absl::StatusOr<Future<Unit>> Session::TakeFuture(uint64_t handle) {
  auto it = futures_.find(handle);
  if (it == futures_.end()) return Unknown("future", handle);
  Future<Unit> future = it->second;
  futures_.erase(it);
  return future;
}

absl::Status Session::CheckExecutables() const {
  if (executables_.size() < options_.bounds.executables) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("session ", options_.session_id, ": keeps ", executables_.size(),
                                                   " executables, as many as a session may"));
}

uint64_t Session::NameExecutable(Executable executable) {
  uint64_t handle = NewHandle();
  executables_[handle] = std::make_unique<Executable>(std::move(executable));
  return handle;
}

absl::StatusOr<Executable*> Session::FindExecutable(uint64_t handle) {
  auto it = executables_.find(handle);
  if (it == executables_.end()) {
    return absl::NotFoundError(absl::StrCat("session ", options_.session_id, ": no executable with handle ", handle));
  }
  return it->second.get();
}

absl::StatusOr<Executable*> Session::FindExecutable(absl::string_view fingerprint) {
  for (const auto& [handle, executable] : executables_) {
    if (executable->fingerprint == fingerprint) return executable.get();
  }
  return absl::NotFoundError(
      absl::StrCat("session ", options_.session_id, ": no executable with fingerprint ", fingerprint.substr(0, 64)));
}

void Session::ForgetExecutable(uint64_t handle) {
  auto it = executables_.find(handle);
  if (it == executables_.end()) return;
  host_calls_.Drop(it->second->id);
  controller_.ReleaseProgram(id_, it->second->id);
  executables_.erase(it);
}

}  // namespace gangway::ifrt_proxy
