// Logical arrays: making, reading, waiting, letting go.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/controller/runtime_controller.h"

namespace gangway::controller {
namespace {

constexpr int64_t kEarlyBytes = 1024;  // of values that come without having been asked for
constexpr int kMostReads = 8;          // remembered: so many are sent in vain when a client stops to read

absl::StatusOr<int64_t> ByteSize(DType dtype, const DimVector& dims) {
  int64_t bytes = ByteWidth(dtype);
  for (int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) {
      return absl::InvalidArgumentError("dimensions out of range");
    }
  }
  return bytes;
}

absl::Status NoArray(ArrayId id) { return absl::NotFoundError(absl::StrCat("no array ", id.value())); }

// For every position of the array, the host shard that holds its bytes.
absl::StatusOr<std::vector<int>> ShardOfPosition(const Layout& layout, const std::vector<HostShard>& shards) {
  const int positions = static_cast<int>(layout.spec.devices.size());
  std::vector<int> of(positions, -1);
  for (size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].bytes == nullptr) return absl::InvalidArgumentError("a host shard without bytes");
    for (int position : shards[i].devices) {
      if (position < 0 || position >= positions || of[position] >= 0) {
        return absl::InvalidArgumentError(absl::StrCat("host shard ", i, " for position ", position, " of ", positions,
                                                       ", which does not exist or has one"));
      }
      GW_ASSIGN_OR_RETURN(int64_t bytes, ByteSize(layout.spec.dtype, layout.ShardDims(position)));
      if (bytes != static_cast<int64_t>(shards[i].bytes->size())) {
        return absl::InvalidArgumentError(
            absl::StrCat("host shard ", i, " has ", shards[i].bytes->size(), " bytes, its shape takes ", bytes));
      }
      of[position] = static_cast<int>(i);
    }
  }
  for (int position = 0; position < positions; ++position) {
    if (of[position] < 0) return absl::InvalidArgumentError(absl::StrCat("no host shard for position ", position));
  }
  return of;
}

}  // namespace

absl::StatusOr<ArrayRecord*> RuntimeController::FindArray(ArrayId id) {
  auto it = arrays_.find(id);
  if (it == arrays_.end()) return NoArray(id);
  return it->second.get();
}

absl::StatusOr<const ArrayRecord*> RuntimeController::FindArray(ArrayId id) const {
  auto it = arrays_.find(id);
  if (it == arrays_.end()) return NoArray(id);
  return it->second.get();
}

absl::StatusOr<ArrayRecord*> RuntimeController::UsableArray(ArrayId id) {
  GW_ASSIGN_OR_RETURN(ArrayRecord * array, FindArray(id));
  if (array->IsDeleted()) {
    return absl::InvalidArgumentError(absl::StrCat("array ", id.value(), " has been deleted or donated"));
  }
  return array;
}

absl::StatusOr<std::shared_ptr<const Layout>> RuntimeController::MakeLayout(ArraySpec spec) const {
  auto layout = std::make_shared<Layout>();
  if (!IsElement(spec.dtype)) return absl::InvalidArgumentError("an array needs an element type");
  if (spec.shard_dims.size() != 1 && spec.shard_dims.size() != spec.devices.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.shard_dims.size(), " shard shapes for ", spec.devices.size(), " devices"));
  }
  GW_ASSIGN_OR_RETURN(layout->placement, cluster_.Place(spec.devices));
  for (const DimVector& dims : spec.shard_dims) {
    GW_ASSIGN_OR_RETURN(int64_t bytes, ByteSize(spec.dtype, dims));
    layout->shard_bytes = std::max(layout->shard_bytes, bytes);
  }
  layout->spec = std::move(spec);
  return std::shared_ptr<const Layout>(std::move(layout));
}

ArrayId RuntimeController::AddArray(SessionRecord& session, std::shared_ptr<const Layout> layout,
                                    std::shared_ptr<TaskRecord> producer) {
  const ArrayId id(next_array_++);
  auto record = std::make_unique<ArrayRecord>();
  record->session = session.id;
  record->use = session.use.get();
  record->use->AddArrays(1);
  record->buffer = net::BufferId(id.value());  // until it moves
  record->layout = std::move(layout);
  record->producer = std::move(producer);
  arrays_.emplace(id, std::move(record));
  return id;
}

absl::Status RuntimeController::ErrorOf(const ArrayRecord& array) const {
  if (!array.error.ok()) return array.error;
  return array.producer == nullptr ? absl::OkStatus() : array.producer->error;
}

absl::StatusOr<ArrayId> RuntimeController::MakeArray(SessionId session, ArraySpec spec, std::vector<HostShard> shards) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN(SessionRecord * owner, UsableSession(session));
  GW_ASSIGN_OR_RETURN_WITH(std::shared_ptr<const Layout> layout, MakeLayout(std::move(spec)), "new array");
  GW_ASSIGN_OR_RETURN_WITH(std::vector<int> shard_of, ShardOfPosition(*layout, shards), "new array");
  int64_t host_bytes = 0;
  for (const HostShard& shard : shards) host_bytes += static_cast<int64_t>(shard.bytes->size());
  GW_RETURN_IF_ERROR_WITH(CheckArrayQuota(*owner, 1), "new array");
  GW_RETURN_IF_ERROR_WITH(CheckHostQuota(*owner, host_bytes), "new array");
  GW_RETURN_IF_ERROR_WITH(CheckCapacity(layout->spec.devices, layout->shard_bytes), "new array");
  auto graph = std::make_shared<const dataflow::Graph>(
      dataflow::SingleNode(dataflow::NodeKind::kUpload, "upload", 0, 1, WorkersOf(layout->placement)));
  Command command;
  command.task = NewTask(session, std::move(graph));
  command.host_bytes = host_bytes;
  const ArrayId id = AddArray(*owner, layout, command.task);
  command.task->first_output = arrays_[id]->buffer;
  command.task->num_outputs = 1;
  if (resource::ClaimRef claim = NewClaim(*owner, *layout)) {
    arrays_[id]->memory.push_back(claim);
    command.claims.push_back(std::move(claim));
  }
  for (const resource::Share& share : layout->placement) {
    net::MakeBuffer make;
    make.buffer = command.task->first_output;
    make.task = command.task->id;
    make.dtype = layout->spec.dtype;
    std::vector<int> piece_of(shards.size(), -1);
    for (const auto& member : share.members) {
      const int shard = shard_of[member.position];
      const DimVector& dims = layout->ShardDims(member.position);
      int& piece = piece_of[shard];
      // Equal bytes may have to look different on different devices.
      if (piece < 0 || make.pieces[piece].dims != dims) {
        piece = static_cast<int>(make.pieces.size());
        make.pieces.push_back({net::Payload(shards[shard].bytes), dims, {}});
      }
      make.pieces[piece].devices.push_back(member.local);
    }
    command.messages.push_back({share.worker, std::move(make)});
  }
  Run(session, std::move(command));
  return id;
}

absl::StatusOr<ArrayId> RuntimeController::MakeErrorArray(SessionId session, ArraySpec spec, absl::Status error) {
  GW_CHECK(loop_->InLoop());
  SessionRecord* owner = FindSession(session);
  if (owner == nullptr) return absl::NotFoundError(absl::StrCat("no session ", session.value()));
  GW_RETURN_IF_ERROR_WITH(CheckArrayQuota(*owner, 1), "error array");
  auto layout = std::make_shared<Layout>();
  if (spec.shard_dims.size() != 1 && spec.shard_dims.size() != spec.devices.size()) spec.shard_dims = {spec.dims};
  layout->spec = std::move(spec);
  const ArrayId id = AddArray(*owner, std::move(layout), nullptr);
  arrays_[id]->error = error.ok() ? absl::InternalError("an error array without an error") : std::move(error);
  return id;
}

Future<std::shared_ptr<const std::string>> RuntimeController::Fetch(ArrayId id, int shard) {
  GW_CHECK(loop_->InLoop());
  using Outcome = absl::StatusOr<Bytes>;
  auto array = UsableArray(id);
  if (!array.ok()) return Future<Bytes>(Outcome(array.status()));
  const ArrayRecord& record = **array;
  if (absl::Status error = ErrorOf(record); !error.ok()) return Future<Bytes>(Outcome(error));
  if (shard < 0 || shard >= static_cast<int>(record.layout->spec.devices.size())) {
    return Future<Bytes>(
        Outcome(absl::InvalidArgumentError(absl::StrCat("array ", id.value(), " has no shard ", shard))));
  }
  const auto session = UsableSession(record.session);
  if (!session.ok()) return Future<Bytes>(Outcome(session.status()));
  NoteRead(record);
  if (shard == 0 && record.early.has_value()) return *record.early;
  if (absl::Status many = CheckQuestions(**session); !many.ok()) return Future<Bytes>(Outcome(many));
  Command command;
  const Future<Bytes> bytes = AskFor(**session, record, shard, &command);
  Run(record.session, std::move(command));
  return bytes;
}

Future<std::shared_ptr<const std::string>> RuntimeController::AskFor(const SessionRecord& session,
                                                                     const ArrayRecord& array, int shard,
                                                                     Command* command) {
  const resource::Device& device = cluster_.device(array.layout->spec.devices[shard]);
  Promise<Bytes> promise;
  const net::RequestId request(next_request_++);
  requests_[request] = {device.worker,
                        [promise, producer = array.producer](net::Fetched fetched) {
                          if (fetched.status.ok()) return promise.Set(fetched.bytes.AsString());
                          // The maker's error tells more than that of the worker that was to hold the value.
                          const bool known = producer != nullptr && !producer->error.ok();
                          promise.Set(known ? producer->error : fetched.status);
                        },
                        session.use};
  ++session.use->questions;
  command->messages.push_back({device.worker, net::FetchShard{request, array.buffer, device.local}});
  return promise.future();
}

// What was read of the last executions is asked for along with the next one, if it is small: it is on its way as soon
// as it is made. A read counts for two, and every value that is asked for takes one off.
void RuntimeController::NoteRead(const ArrayRecord& array) {
  auto program = programs_.find(array.program);
  if (array.output < 0 || program == programs_.end() || array.layout->shard_bytes > kEarlyBytes) return;
  int& reads = program->second->reads[array.output];
  reads = std::min(reads + 2, kMostReads);
}

bool RuntimeController::IsOftenRead(ProgramRecord& program, int output) {
  int& reads = program.reads[output];
  if (reads < 2) return false;
  --reads;
  return true;
}

absl::StatusOr<const ArraySpec*> RuntimeController::Spec(ArrayId id) const {
  GW_ASSIGN_OR_RETURN(const ArrayRecord* array, FindArray(id));
  return &array->layout->spec;
}

Future<Unit> RuntimeController::Ready(ArrayId id) {
  GW_CHECK(loop_->InLoop());
  auto array = UsableArray(id);
  if (!array.ok()) return Future<Unit>(absl::StatusOr<Unit>(array.status()));
  if (absl::Status error = ErrorOf(**array); !error.ok()) return Future<Unit>(absl::StatusOr<Unit>(error));
  TaskRecord* producer = (*array)->producer.get();
  if (producer == nullptr || producer->over) return ReadyFuture();
  Watch(*producer);
  return producer->done.future();
}

Future<Unit> RuntimeController::Enqueued(ArrayId id) {
  GW_CHECK(loop_->InLoop());
  auto array = UsableArray(id);
  if (!array.ok()) return Future<Unit>(absl::StatusOr<Unit>(array.status()));
  TaskRecord* producer = (*array)->producer.get();
  if (producer == nullptr || producer->over) return ReadyFuture();
  const auto session = UsableSession((*array)->session);
  if (!session.ok()) return Future<Unit>(absl::StatusOr<Unit>(session.status()));
  if (absl::Status many = CheckQuestions(**session); !many.ok()) return Future<Unit>(absl::StatusOr<Unit>(many));
  struct Missing {
    size_t workers = 0;
    absl::Status status;
    Promise<Unit> all;
  };
  auto missing = std::make_shared<Missing>();
  Command command;
  for (WorkerId worker : producer->workers()) {
    const net::RequestId request(next_request_++);
    requests_[request] = {worker,
                          [missing](const net::Fetched& reached) {
                            missing->status.Update(reached.status);
                            if (--missing->workers > 0) return;
                            missing->all.Set(missing->status.ok() ? absl::StatusOr<Unit>(Unit{}) : missing->status);
                          },
                          (*session)->use};
    ++(*session)->use->questions;
    command.messages.push_back({worker, net::Mark{request}});
  }
  missing->workers = command.messages.size();
  Run((*array)->session, std::move(command));
  return missing->all.future();
}

absl::Status RuntimeController::Delete(ArrayId id) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN(ArrayRecord * array, FindArray(id));
  for (const auto& shard : array->shared) {
    if (shard != nullptr) shard->gone = true;
  }
  return Donate(id);
}

absl::Status RuntimeController::Donate(ArrayId id) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN(ArrayRecord * array, FindArray(id));
  if (std::exchange(array->deleted, true)) return absl::OkStatus();
  FreeData(*array);
  array->shared.clear();
  return absl::OkStatus();
}

absl::StatusOr<bool> RuntimeController::IsDeleted(ArrayId id) const {
  GW_ASSIGN_OR_RETURN(const ArrayRecord* array, FindArray(id));
  return array->IsDeleted();
}

void RuntimeController::Release(ArrayId id) {
  GW_CHECK(loop_->InLoop());
  auto it = arrays_.find(id);
  if (it == arrays_.end()) return;
  std::unique_ptr<ArrayRecord> array = std::move(it->second);
  arrays_.erase(it);
  array->use->AddArrays(-1);
  if (!array->deleted) FreeData(*array);
}

// Behind what is held and uses it; otherwise along with whatever is sent next. Later is always safe, since ids are
// never used twice; at once where nothing needs it, since what is held may be waiting for this memory.
void RuntimeController::FreeData(ArrayRecord& array) {
  SessionRecord* session = FindSession(array.session);
  Command command;
  command.gives_back = std::move(array.memory);
  const bool is_used = session != nullptr && session->held_uses.contains(array.buffer);
  for (const resource::Share& share : array.layout->placement) {
    WorkerLink& link = *links_[share.worker.value()];
    if (is_used) {
      command.messages.push_back({share.worker, net::FreeBuffers{{array.buffer}}});
    } else if (!link.lost) {
      link.unfreed.push_back(array.buffer);
    }
  }
  if (is_used) Hold(*session, std::move(command));
}

}  // namespace gangway::controller
