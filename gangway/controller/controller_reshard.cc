// Arrays split in another way, on whichever devices: their shards are put together by the workers.
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/controller/runtime_controller.h"
#include "gangway/controller/shard_pieces.h"

namespace gangway::controller {
namespace {

net::Dims DimsOf(const DimVector& dims) { return net::Dims(dims.begin(), dims.end()); }

// Every shard of `to` is a whole shard of `from`: nothing has to be put together.
bool AllWhole(const std::vector<ShardPiece>& pieces, const Layout& from, const Layout& to) {
  if (pieces.size() != to.spec.devices.size()) return false;
  for (const ShardPiece& piece : pieces) {
    if (piece.extent != from.ShardDims(piece.from) || piece.extent != to.ShardDims(piece.to)) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<ArrayId> RuntimeController::Reshard(SessionId session, ArrayId id, ArraySpec spec,
                                                   CopySemantics semantics) {
  GW_CHECK(loop_->InLoop());
  GW_RETURN_IF_ERROR(UsableSession(session).status());
  GW_ASSIGN_OR_RETURN_WITH(ArrayRecord * array, UsableArray(id), "reshard");
  const std::shared_ptr<const Layout> from = array->layout;
  if (absl::Status error = ErrorOf(*array); !error.ok()) return MakeErrorArray(session, spec, std::move(error));
  if (from->spec.holds_strings) return absl::UnimplementedError("an array of strings is not split in another way");
  GW_ASSIGN_OR_RETURN_WITH(std::shared_ptr<const Layout> to, MakeLayout(std::move(spec)), "reshard");
  auto distance = [&](int source, int target) {
    const DeviceId a = from->spec.devices[source], b = to->spec.devices[target];
    return a == b ? 0 : cluster_.device(a).worker == cluster_.device(b).worker ? 1 : 2;
  };
  GW_ASSIGN_OR_RETURN_WITH(const std::vector<ShardPiece> pieces, PlanPieces(from->spec, to->spec, distance), "reshard");
  const bool same_memory = from->spec.memory_kind == to->spec.memory_kind;
  if (!same_memory && semantics == CopySemantics::kShare) semantics = CopySemantics::kCopy;
  ArrayId resharded;
  if (AllWhole(pieces, *from, *to)) {
    std::vector<Move> moves;
    for (const ShardPiece& piece : pieces) moves.push_back({id, piece.from, piece.to});
    GW_ASSIGN_OR_RETURN(resharded, MoveShards(session, to, moves, "reshard", semantics));
  } else {
    GW_ASSIGN_OR_RETURN(resharded, PatchShards(session, id, to, pieces));
  }
  const bool stays = same_memory && from->spec.devices == to->spec.devices && from->spec.sharding == to->spec.sharding;
  if (semantics == CopySemantics::kDonate && !stays) GW_RETURN_IF_ERROR(Donate(id));
  return resharded;
}

absl::StatusOr<ArrayId> RuntimeController::PatchShards(SessionId session, ArrayId source,
                                                       const std::shared_ptr<const Layout>& layout,
                                                       const std::vector<ShardPiece>& pieces) {
  GW_ASSIGN_OR_RETURN(SessionRecord * owner, UsableSession(session));
  GW_RETURN_IF_ERROR_WITH(CheckArrayQuota(*owner, 1), "reshard");
  GW_RETURN_IF_ERROR_WITH(CheckCapacity(layout->spec.devices, layout->shard_bytes), "reshard");
  auto plan = PlanPatches(source, *layout, pieces);
  std::vector<WorkerId> workers;
  for (const auto& [worker, patch] : plan) {
    if (!patch.sends.empty() || !patch.receives.empty()) {
      GW_RETURN_IF_ERROR_WITH(CheckFabric(Placement{resource::Share{worker, {}}}), "reshard");
    }
    workers.push_back(worker);
  }
  Command command;
  command.task = NewTask(session, std::make_shared<const dataflow::Graph>(
                                      dataflow::SingleNode(dataflow::NodeKind::kCopy, "reshard", 1, 1, workers)));
  const ArrayId id = AddArray(*owner, layout, command.task);
  command.task->first_output = arrays_[id]->buffer;
  command.task->num_outputs = 1;
  for (auto& [worker, patch] : plan) {
    patch.buffer = command.task->first_output;
    patch.task = command.task->id;
    for (const auto& send : patch.sends) Introduce(worker, WorkerId(send.to.value()));
    command.messages.push_back({worker, std::move(patch)});
  }
  if (resource::ClaimRef claim = NewClaim(*owner, *layout)) {
    arrays_[id]->memory.push_back(claim);
    command.claims.push_back(std::move(claim));
  }
  Run(session, std::move(command));
  return id;
}

// A box goes to a worker once, however many of its devices want it.
std::vector<std::pair<WorkerId, net::PatchBuffer>> RuntimeController::PlanPatches(
    ArrayId source, const Layout& layout, const std::vector<ShardPiece>& pieces) {
  const ArrayRecord& array = *arrays_[source];
  std::vector<std::pair<WorkerId, net::PatchBuffer>> plan;
  absl::flat_hash_map<WorkerId, size_t> index;
  auto patch_of = [&](WorkerId worker) -> net::PatchBuffer& {
    auto [at, is_new] = index.try_emplace(worker, plan.size());
    if (is_new) plan.emplace_back(worker, net::PatchBuffer()).second.dtype = layout.spec.dtype;
    return plan[at->second].second;
  };
  std::vector<int> shard_of(layout.spec.devices.size());  // index among the shards of its worker
  for (const resource::Share& share : layout.placement) {
    for (const auto& member : share.members) {
      net::PatchBuffer& patch = patch_of(share.worker);
      shard_of[member.position] = static_cast<int>(patch.shards.size());
      patch.shards.push_back({member.local, DimsOf(layout.ShardDims(member.position))});
    }
  }
  std::map<std::tuple<WorkerId, int, DimVector, DimVector>, size_t> received;
  int sent = 0;
  for (const ShardPiece& piece : pieces) {
    const resource::Device& from = cluster_.device(array.layout->spec.devices[piece.from]);
    const resource::Device& to = cluster_.device(layout.spec.devices[piece.to]);
    const net::Dims start = DimsOf(piece.start), extent = DimsOf(piece.extent), at = DimsOf(piece.at);
    if (from.worker == to.worker) {
      patch_of(to.worker).pieces.push_back({array.buffer, from.local, start, extent, shard_of[piece.to], at});
      continue;
    }
    auto [known, is_new] =
        received.try_emplace({to.worker, piece.from, piece.start, piece.extent}, patch_of(to.worker).receives.size());
    if (is_new) {
      patch_of(to.worker).receives.push_back({net::PeerId(from.worker.value()), sent, extent, {}});
      patch_of(from.worker)
          .sends.push_back({array.buffer, from.local, start, extent, net::PeerId(to.worker.value()), sent});
      ++sent;
    }
    patch_of(to.worker).receives[known->second].targets.push_back({shard_of[piece.to], at});
  }
  return plan;
}

}  // namespace gangway::controller
