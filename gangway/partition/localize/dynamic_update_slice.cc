// dynamic-update-slice along split dimensions. Starts are clamped in the whole array first; every device then replaces
// what lies in its shard.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/emit_arrangement.h"
#include "gangway/partition/localize/part.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// The starts of an update along `dims` where they are constants, inside the array; nothing when one is not.
std::optional<DimVector> ConstantStarts(const Instruction& update, const std::vector<int64_t>& dims) {
  DimVector starts(update.shape().rank(), 0);
  for (int64_t d : dims) {
    const Instruction& start = *update.operand(2 + d);
    const auto* constant = start.attr_if<hlo::ConstantAttr>();
    if (constant == nullptr) return std::nullopt;
    const int64_t room = update.shape().dim(d) - update.operand(1)->shape().dim(d);
    starts[d] = std::clamp<int64_t>(ElementAsInt64(start.shape().dtype(), constant->literal->data()), 0, room);
  }
  return starts;
}

// An update at a place known beforehand: its elements are arranged along the dimensions that it covers in part, so that
// every device receives those that fall into its shard.
class PlacedUpdate {
 public:
  PlacedUpdate(const Instruction& instruction, Sharding result, std::vector<int64_t> covered, DimVector starts,
               Context& context)
      : update_(context.Value(*instruction.operand(1))),
        array_(context.Value(*instruction.operand(0))),
        result_(std::move(result)),
        covered_(std::move(covered)),
        starts_(std::move(starts)),
        context_(context) {
    held_ = result_;
    for (int64_t d : covered_) {
      if (!update_.sharding.IsSplit(d) || held_.ShardCount(d) > update_.global.dim(d)) held_.dims[d].axes.clear();
    }
  }

  double CostOfUpdate() {
    double cost = context_.ReshardCost(update_, held_);
    Shape shape = ShardShape(update_.global, held_);
    for (int64_t d : covered_) {
      const ArrangementPlan plan = PlanDim(d);
      cost += ArrangementCost(plan, static_cast<double>(shape.ByteSize()) / static_cast<double>(shape.dim(d)));
      shape.set_dim(d, plan.Tile());
    }
    return cost;
  }

  absl::StatusOr<Instruction*> Emit() {
    GW_ASSIGN_OR_RETURN(Instruction * array, context_.Reshard(array_, result_));
    GW_ASSIGN_OR_RETURN(Instruction * placed, context_.Reshard(update_, held_));
    Instruction* covers = nullptr;
    for (int64_t d : covered_) {
      placed = EmitArrangement(PlanDim(d), d, result_.dims[d].axes, WithoutLayout(placed->shape()), {placed}, context_);
      const int64_t end = starts_[d] + update_.global.dim(d);
      Instruction* along = context_.WithinAlong(d, starts_[d], end, result_, array_.global, array->shape());
      covers = covers == nullptr ? along : context_.builder().Binary(Opcode::kAnd, covers, along);
    }
    return context_.builder().Select(covers, placed, array);
  }

 private:
  ArrangementPlan PlanDim(int64_t d) const {
    const int64_t extent = update_.global.dim(d);
    const auto kind = held_.IsSplit(d) ? StretchSource::Kind::kSplit : StretchSource::Kind::kWhole;
    return PlanArrangement(array_.global.dim(d), result_.ShardCount(d), {{0, starts_[d], starts_[d] + extent, 0}},
                           {{kind, extent, false}});
  }

  const LocalValue update_, array_;
  const Sharding result_;
  const std::vector<int64_t> covered_;  // dimensions
  const DimVector starts_;
  Context& context_;
  Sharding held_;  // of the update
};

}  // namespace

absl::Status LocalizeDynamicUpdateSlice(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  const LocalValue& update = context.Value(*instruction.operand(1));
  const Shape global = value.global;
  Sharding wanted = context.Wanted(instruction);
  std::vector<int64_t> cut, covered;  // split, or not, of those that the update covers in part
  for (int64_t d = 0; d < global.rank(); ++d) {
    if (update.global.dim(d) == global.dim(d)) continue;
    covered.push_back(d);
    if (wanted.IsSplit(d)) cut.push_back(d);
  }
  if (cut.empty() || !SameMesh(wanted.mesh, context.mesh())) return LocalizeByRule(instruction, context);

  // No communication but for the update, which every device must see whole along the cut dimensions unless it is known
  // where it goes.
  wanted.unreduced.clear();
  Sharding update_sharding = wanted;
  for (int64_t d : cut) update_sharding.dims[d].axes.clear();
  const std::optional<DimVector> known = ConstantStarts(instruction, covered);
  if (known && SameMesh(update.sharding.mesh, context.mesh()) && update.global.ElementCount() > 0) {
    PlacedUpdate placed(instruction, wanted, covered, *known, context);
    if (placed.CostOfUpdate() < context.ReshardCost(update, update_sharding)) {
      GW_ASSIGN_OR_RETURN(Instruction * local, placed.Emit());
      context.Set(instruction, local, wanted);
      return absl::OkStatus();
    }
  }
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> starts, ReplicatedStarts(instruction, 2, context));
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, wanted));
  GW_ASSIGN_OR_RETURN(Instruction * part, context.Reshard(update, update_sharding));
  for (int64_t d = 0; d < global.rank(); ++d) {
    starts[d] = ClampedStart(starts[d], global.dim(d) - update.global.dim(d), context);
  }
  context.Set(instruction, WithOwnPartOf(part, local, wanted, global, cut, std::move(starts), context), wanted);
  return absl::OkStatus();
}

}  // namespace gangway::partition
