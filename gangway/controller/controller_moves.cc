// Arrays made of the shards of others: joined, taken apart, copied, seen in another way.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/controller/runtime_controller.h"

namespace gangway::controller {
namespace {

net::BufferId BufferOf(ArrayId id) { return net::BufferId(id.value()); }

int64_t ElementCount(const DimVector& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

}  // namespace

absl::StatusOr<ArrayId> RuntimeController::Assemble(SessionId session, ArraySpec spec,
                                                    absl::Span<const ArrayId> parts) {
  GW_CHECK(loop_->InLoop());
  if (parts.size() != spec.devices.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("assembling ", parts.size(), " arrays on ", spec.devices.size(), " devices"));
  }
  GW_ASSIGN_OR_RETURN_WITH(std::shared_ptr<const Layout> layout, MakeLayout(std::move(spec)), "assembled array");
  std::vector<Move> moves;
  for (size_t i = 0; i < parts.size(); ++i) {
    GW_ASSIGN_OR_RETURN_WITH(ArrayRecord * part, UsableArray(parts[i]), absl::StrCat("assembling part ", i));
    const ArraySpec& of_part = part->layout->spec;
    if (of_part.devices.size() != 1 || of_part.devices[0] != layout->spec.devices[i] ||
        of_part.dtype != layout->spec.dtype) {
      return absl::InvalidArgumentError(absl::StrCat("part ", i, " of an assembled array must be one ",
                                                     DTypeName(layout->spec.dtype), " shard on device ",
                                                     layout->spec.devices[i].value()));
    }
    moves.push_back({parts[i], 0, static_cast<int>(i)});
  }
  return MoveShards(session, std::move(layout), moves, "assembled array");
}

absl::StatusOr<std::vector<ArrayId>> RuntimeController::Disassemble(SessionId session, ArrayId id) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN(ArrayRecord * array, UsableArray(id));
  const int count = static_cast<int>(array->layout->spec.devices.size());
  std::vector<ArrayId> parts;
  for (int i = 0; i < count; ++i) {
    GW_ASSIGN_OR_RETURN(ArrayId part, ViewShard(session, id, i));
    parts.push_back(part);
  }
  return parts;
}

absl::StatusOr<ArrayId> RuntimeController::ViewShard(SessionId session, ArrayId id, int shard) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN(ArrayRecord * array, UsableArray(id));
  const Layout& whole = *array->layout;
  if (shard < 0 || shard >= static_cast<int>(whole.spec.devices.size())) {
    return absl::InvalidArgumentError(absl::StrCat("array ", id.value(), " has no shard ", shard));
  }
  ArraySpec spec;
  spec.dtype = whole.spec.dtype;
  spec.dims = whole.ShardDims(shard);
  spec.devices = {whole.spec.devices[shard]};
  spec.shard_dims = {spec.dims};
  spec.memory_kind = whole.spec.memory_kind;
  GW_ASSIGN_OR_RETURN(std::shared_ptr<const Layout> layout, MakeLayout(std::move(spec)));
  return MoveShards(session, std::move(layout), {{id, shard, 0}}, "part of an array");
}

absl::StatusOr<ArrayId> RuntimeController::Copy(SessionId session, ArrayId id, std::vector<DeviceId> devices,
                                                std::optional<std::string> memory_kind, bool donate) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN_WITH(ArrayRecord * array, UsableArray(id), "copy");
  ArraySpec spec = array->layout->spec;
  if (devices.empty()) devices = spec.devices;
  if (devices.size() != spec.devices.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("copy of ", spec.devices.size(), " shards to ", devices.size(), " devices"));
  }
  spec.devices = std::move(devices);
  if (memory_kind.has_value()) spec.memory_kind = *std::move(memory_kind);
  GW_ASSIGN_OR_RETURN_WITH(std::shared_ptr<const Layout> layout, MakeLayout(std::move(spec)), "copy");
  std::vector<Move> moves;
  for (int i = 0; i < static_cast<int>(layout->spec.devices.size()); ++i) moves.push_back({id, i, i});
  GW_ASSIGN_OR_RETURN(ArrayId copy, MoveShards(session, std::move(layout), moves, "copy"));
  if (donate) GW_RETURN_IF_ERROR(Delete(id));
  return copy;
}

absl::StatusOr<ArrayId> RuntimeController::Remap(SessionId session, ArrayId id, ArraySpec spec) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN_WITH(ArrayRecord * array, UsableArray(id), "remap");
  const ArraySpec& from = array->layout->spec;
  if (spec.devices != from.devices || spec.dtype != from.dtype) {
    return absl::InvalidArgumentError("a remapped array keeps its devices and element type");
  }
  GW_ASSIGN_OR_RETURN_WITH(std::shared_ptr<const Layout> layout, MakeLayout(std::move(spec)), "remap");
  std::vector<Move> moves;
  for (int i = 0; i < static_cast<int>(layout->spec.devices.size()); ++i) {
    if (ElementCount(layout->ShardDims(i)) != ElementCount(array->layout->ShardDims(i))) {
      return absl::InvalidArgumentError(absl::StrCat("remap: shard ", i, " would change its size"));
    }
    moves.push_back({id, i, i});
  }
  return MoveShards(session, std::move(layout), moves, "remapped array");
}

// The token's holders share shards; both get one.
void RuntimeController::ShareShards(ArrayRecord& a, ArrayRecord& b) {
  // Those nobody else holds any more say nothing; a long-lived array that is often taken apart must not collect them.
  for (ArrayRecord* array : {&a, &b}) {
    if (array->sharing.size() >= 16) {
      std::erase_if(array->sharing, [](const auto& token) { return token.use_count() == 1; });
    }
  }
  auto token = std::make_shared<const int>(0);
  a.sharing.push_back(token);
  b.sharing.push_back(std::move(token));
}

// One message per worker that gets shards; inside a worker nothing but device memory moves. Between workers the bytes
// take the way over the controller until workers have channels of their own.
absl::StatusOr<ArrayId> RuntimeController::MoveShards(SessionId session, std::shared_ptr<const Layout> layout,
                                                      const std::vector<Move>& moves, std::string what) {
  GW_RETURN_IF_ERROR(CheckSession(session));
  for (const Move& move : moves) {
    GW_ASSIGN_OR_RETURN(ArrayRecord * source, UsableArray(move.source));
    if (absl::Status error = ErrorOf(*source); !error.ok()) {
      return MakeErrorArray(session, layout->spec, std::move(error));
    }
  }
  std::vector<WorkerId> workers;
  for (const auto& share : layout->placement) workers.push_back(share.worker);
  auto graph = std::make_shared<const dataflow::Graph>(
      dataflow::SingleNode(dataflow::NodeKind::kCopy, what, static_cast<int>(moves.size()), 1, workers));
  Command command;
  command.task = NewTask(session, what, std::move(graph));
  const ArrayId id = AddArray(session, layout, command.task);
  ArrayRecord& target = *arrays_[id];
  command.task->first_output = BufferOf(id);
  command.task->num_outputs = 1;
  std::vector<const Move*> move_to(layout->spec.devices.size(), nullptr);
  for (const Move& move : moves) move_to[move.to_position] = &move;

  for (const resource::Share& share : layout->placement) {
    net::CopyBuffer copy;
    copy.buffer = BufferOf(id);
    copy.task = command.task->id;
    bool local = true;
    bool reshapes = false;
    for (const auto& member : share.members) {
      const Move& move = *move_to[member.position];
      ArrayRecord& source = *arrays_[move.source];
      const resource::Device& from = cluster_.device(source.layout->spec.devices[move.from_position]);
      local &= from.worker == share.worker;
      const DimVector& dims = layout->ShardDims(member.position);
      const bool reshape = dims != source.layout->ShardDims(move.from_position);
      reshapes |= reshape;
      copy.parts.push_back({BufferOf(move.source), from.local, member.local});
      copy.dims.push_back(dims);
      if (from.worker == share.worker && from.local == member.local) ShareShards(source, target);
    }
    if (!reshapes) copy.dims.clear();
    if (local) {
      command.messages.push_back({share.worker, std::move(copy)});
    } else {
      Relay(command.task, layout, share, move_to, &command);
    }
  }
  Run(session, std::move(command));
  return id;
}

// A worker gets its shards from others: they are announced to it, fetched from their owners and made when the last has
// come.
void RuntimeController::Relay(const std::shared_ptr<TaskRecord>& task, std::shared_ptr<const Layout> layout,
                              const resource::Share& share, const std::vector<const Move*>& move_to, Command* command) {
  struct Gathering {
    net::MakeBuffer make;
    size_t missing = 0;
    absl::Status status;
  };
  auto gathering = std::make_shared<Gathering>();
  gathering->make.buffer = task->first_output;
  gathering->make.task = task->id;
  gathering->make.dtype = layout->spec.dtype;
  gathering->missing = share.members.size();
  net::ExpectBuffer expect{task->first_output, {}};
  for (const auto& member : share.members) {
    expect.devices.push_back(member.local);
    gathering->make.pieces.push_back({net::Payload(), layout->ShardDims(member.position), {member.local}});
  }
  const WorkerId target = share.worker;
  command->messages.push_back({target, std::move(expect)});
  for (size_t i = 0; i < share.members.size(); ++i) {
    const Move& move = *move_to[share.members[i].position];
    const ArraySpec& source = arrays_[move.source]->layout->spec;
    const resource::Device& from = cluster_.device(source.devices[move.from_position]);
    const net::RequestId request(next_request_++);
    requests_[request] = {from.worker, [this, gathering, task, target, i](net::Fetched fetched) {
                            gathering->status.Update(fetched.status);
                            gathering->make.pieces[i].bytes = std::move(fetched.bytes);
                            if (--gathering->missing > 0) return;
                            if (!gathering->status.ok()) {
                              SendTo(target, net::PoisonBuffers{{gathering->make.buffer}, gathering->status}, nullptr);
                              return PartDone(task, target, gathering->status);
                            }
                            SendTo(target, std::move(gathering->make), task);
                            if (task->watched) SendTo(target, net::WatchTasks{{task->id}}, nullptr);
                          }};
    command->messages.push_back({from.worker, net::FetchShard{request, BufferOf(move.source), from.local}});
  }
}

}  // namespace gangway::controller
