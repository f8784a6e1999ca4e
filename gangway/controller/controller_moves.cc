// Arrays made of the shards of others: joined, taken apart, copied, seen in another way.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/controller/runtime_controller.h"

namespace gangway::controller {
namespace {

int64_t ElementCount(const DimVector& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

// Whoever holds shards of another holds their memory.
void ShareMemory(const ArrayRecord& from, ArrayRecord& to) {
  for (const resource::ClaimRef& claim : from.memory) {
    if (std::find(to.memory.begin(), to.memory.end(), claim) == to.memory.end()) to.memory.push_back(claim);
  }
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
        of_part.dtype != layout->spec.dtype || of_part.holds_strings != layout->spec.holds_strings) {
      const absl::string_view type = layout->spec.holds_strings ? "string" : DTypeName(layout->spec.dtype);
      return absl::InvalidArgumentError(absl::StrCat("part ", i, " of an assembled array must be one ", type,
                                                     " shard on device ", layout->spec.devices[i].value()));
    }
    // What was never made may lack a shape.
    const DimVector& wanted = layout->ShardDims(static_cast<int>(i));
    if (ErrorOf(*part).ok() && part->layout->ShardDims(0) != wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat("part ", i, " of an assembled array is ",
                       Shape(of_part.dtype, part->layout->ShardDims(0)).ToString(/*with_layout=*/false), ", its shard ",
                       Shape(of_part.dtype, wanted).ToString(/*with_layout=*/false)));
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
    absl::StatusOr<ArrayId> part = ViewShard(session, id, i);
    if (!part.ok()) {
      for (ArrayId made : parts) Release(made);
      return part.status();
    }
    parts.push_back(*part);
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
  spec.holds_strings = whole.spec.holds_strings;
  GW_ASSIGN_OR_RETURN(std::shared_ptr<const Layout> layout, MakeLayout(std::move(spec)));
  GW_ASSIGN_OR_RETURN(ArrayId view, MoveShards(session, std::move(layout), {{id, shard, 0}}, "part of an array"));
  ArrayRecord& record = *arrays_[view];
  record.program = array->program;
  record.output = array->output;
  if (shard == 0) record.early = array->early;
  return view;
}

absl::StatusOr<ArrayId> RuntimeController::Copy(SessionId session, ArrayId id, std::vector<DeviceId> devices,
                                                std::optional<std::string> memory_kind, CopySemantics semantics) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN_WITH(ArrayRecord * array, UsableArray(id), "copy");
  ArraySpec spec = array->layout->spec;
  if (devices.empty()) devices = spec.devices;
  if (devices.size() != spec.devices.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("copy of ", spec.devices.size(), " shards to ", devices.size(), " devices"));
  }
  spec.devices = std::move(devices);
  if (memory_kind.has_value() && *memory_kind != spec.memory_kind) {
    spec.memory_kind = *std::move(memory_kind);
    // Another memory, though it may be the same to the device.
    if (semantics == CopySemantics::kShare) semantics = CopySemantics::kCopy;
  }
  const bool stays = spec.devices == array->layout->spec.devices && spec.memory_kind == array->layout->spec.memory_kind;
  GW_ASSIGN_OR_RETURN_WITH(std::shared_ptr<const Layout> layout, MakeLayout(std::move(spec)), "copy");
  std::vector<Move> moves;
  for (int i = 0; i < static_cast<int>(layout->spec.devices.size()); ++i) moves.push_back({id, i, i});
  GW_ASSIGN_OR_RETURN(ArrayId copy, MoveShards(session, std::move(layout), moves, "copy", semantics));
  if (semantics == CopySemantics::kDonate && !stays) GW_RETURN_IF_ERROR(Donate(id));
  return copy;
}

absl::StatusOr<ArrayId> RuntimeController::Remap(SessionId session, ArrayId id, ArraySpec spec) {
  GW_CHECK(loop_->InLoop());
  GW_ASSIGN_OR_RETURN_WITH(ArrayRecord * array, UsableArray(id), "remap");
  const ArraySpec& from = array->layout->spec;
  if (from.holds_strings) return absl::UnimplementedError("an array of strings is not seen in another shape");
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

// Bytes move inside a worker, or straight from the worker that has them to the one that gets them: each is sent once to
// a worker, however many of its devices want it.
std::vector<std::pair<WorkerId, net::CopyBuffer>> RuntimeController::PlanMoves(const Layout& layout,
                                                                               const std::vector<Move>& moves) {
  std::vector<std::pair<WorkerId, net::CopyBuffer>> plan;
  absl::flat_hash_map<WorkerId, size_t> index;
  auto part_of = [&](WorkerId worker) -> net::CopyBuffer& {
    auto [at, is_new] = index.try_emplace(worker, plan.size());
    if (is_new) plan.emplace_back(worker, net::CopyBuffer());
    return plan[at->second].second;
  };
  for (const auto& share : layout.placement) part_of(share.worker);
  std::map<std::tuple<WorkerId, ArrayId, int>, size_t> received;  // -> index in the receives of the worker
  for (const Move& move : moves) {
    const Layout& source = *arrays_[move.source]->layout;
    const net::BufferId buffer = arrays_[move.source]->buffer;
    const resource::Device& from = cluster_.device(source.spec.devices[move.from_position]);
    const resource::Device& to = cluster_.device(layout.spec.devices[move.to_position]);
    const DimVector& dims = layout.ShardDims(move.to_position);
    net::CopyBuffer& target = part_of(to.worker);
    if (from.worker == to.worker) {
      target.parts.push_back({buffer, from.local, to.local});
      target.dims.push_back(dims);
      continue;
    }
    // Replicas are the same bytes wherever they are taken from.
    const bool replicas = source.spec.sharding.has_value() && source.spec.sharding->IsReplicated() &&
                          source.spec.sharding->manual.empty() && layout.spec.shard_dims.size() == 1;
    auto [at, is_new] =
        received.try_emplace({to.worker, move.source, replicas ? -1 : move.from_position}, target.receives.size());
    if (!is_new && target.receives[at->second].dims == dims) {
      target.receives[at->second].to.push_back(to.local);
      continue;
    }
    const net::PeerId sender(from.worker.value()), receiver(to.worker.value());
    target.receives.push_back({sender, move.to_position, dims, {to.local}});
    part_of(from.worker).sends.push_back({buffer, from.local, receiver, move.to_position});
  }
  return plan;
}

absl::StatusOr<ArrayId> RuntimeController::MoveShards(SessionId session, std::shared_ptr<const Layout> layout,
                                                      const std::vector<Move>& moves, std::string what,
                                                      CopySemantics semantics) {
  GW_ASSIGN_OR_RETURN(SessionRecord * owner, UsableSession(session));
  for (const Move& move : moves) {
    GW_ASSIGN_OR_RETURN(ArrayRecord * source, UsableArray(move.source));
    if (absl::Status error = ErrorOf(*source); !error.ok()) {
      return MakeErrorArray(session, layout->spec, std::move(error));
    }
  }
  GW_RETURN_IF_ERROR_WITH(CheckArrayQuota(*owner, 1), what);
  GW_RETURN_IF_ERROR_WITH(CheckCapacity(layout->spec.devices, layout->shard_bytes), what);
  GW_ASSIGN_OR_RETURN(Command command, CopyCommand(session, *layout, moves, what, net::BufferId(next_array_)));
  const ArrayId id = AddArray(*owner, layout, command.task);
  bool moves_bytes = false;
  for (const Move& move : moves) {
    ArrayRecord& source = *arrays_[move.source];
    if (source.layout->spec.devices[move.from_position] != layout->spec.devices[move.to_position]) {
      moves_bytes = true;
      continue;
    }
    ShareMemory(source, *arrays_[id]);
    const std::shared_ptr<SharedShard>& shard = source.Share(move.from_position);
    std::shared_ptr<SharedShard>& view = arrays_[id]->Share(move.to_position);
    // Natively no two arrays hold the same strings.
    if (semantics == CopySemantics::kCopy || layout->spec.holds_strings) {
      view->bytes = shard->bytes;
    } else {
      view = shard;
    }
  }
  resource::ClaimRef claim = moves_bytes ? NewClaim(*owner, *layout) : nullptr;
  if (claim != nullptr) {
    arrays_[id]->memory.push_back(claim);
    command.claims.push_back(std::move(claim));
  }
  Run(session, std::move(command));
  return id;
}

absl::StatusOr<Command> RuntimeController::CopyCommand(SessionId session, const Layout& layout,
                                                       const std::vector<Move>& moves, const std::string& what,
                                                       net::BufferId buffer) {
  auto plan = PlanMoves(layout, moves);
  std::vector<WorkerId> workers;
  for (const auto& [worker, copy] : plan) {
    const Placement alone = {resource::Share{worker, {}}};
    if (!copy.sends.empty() || !copy.receives.empty()) GW_RETURN_IF_ERROR_WITH(CheckFabric(alone), what);
    workers.push_back(worker);
  }
  auto graph = std::make_shared<const dataflow::Graph>(
      dataflow::SingleNode(dataflow::NodeKind::kCopy, what, static_cast<int>(moves.size()), 1, workers));
  Command command;
  command.task = NewTask(session, std::move(graph));
  command.task->first_output = buffer;
  command.task->num_outputs = 1;
  for (auto& [worker, copy] : plan) {
    copy.buffer = buffer;
    copy.task = command.task->id;
    copy.dtype = layout.spec.dtype;
    for (const auto& send : copy.sends) Introduce(worker, WorkerId(send.to.value()));
    command.messages.push_back({worker, std::move(copy)});
  }
  return command;
}

}  // namespace gangway::controller
