// dynamic-slice and dynamic-update-slice along split dimensions. Starts are clamped in the whole array first; every
// device then takes, or replaces, what lies in its shard.
#include <algorithm>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/part.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

std::vector<Instruction*> ReplicatedStarts(const Instruction& instruction, int64_t first, Context& context,
                                           absl::Status* status) {
  std::vector<Instruction*> starts;
  for (int64_t i = first; i < instruction.operand_count(); ++i) {
    auto start = context.Replicate(context.Value(*instruction.operand(i)));
    if (!start.ok()) {
      *status = start.status();
      return {};
    }
    starts.push_back(*start);
  }
  return starts;
}

Reduction CombinerOf(DType dtype) { return dtype == DType::kPred ? Reduction::kOr : Reduction::kSum; }

}  // namespace

absl::Status LocalizeDynamicSlice(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  const Shape global = value.global;
  std::vector<int64_t> cut;  // split dimensions of which only a part is taken
  for (int64_t d = 0; d < global.rank(); ++d) {
    if (value.sharding.IsSplit(d) && instruction.shape().dim(d) != global.dim(d)) cut.push_back(d);
  }
  if (cut.empty() || !SameMesh(value.sharding.mesh, context.mesh())) return LocalizeByRule(instruction, context);

  // Everyone contributes what it has of the slice; the parts add up. Worth it when less moves than by gathering.
  Sharding kept = value.sharding;
  kept.unreduced.clear();
  Sharding result = kept, gathered = kept;
  for (int64_t d : cut) {
    for (const AxisRef& ref : kept.dims[d].axes) result.unreduced.push_back(ref);
    result.dims[d].axes.clear();
    gathered.dims[d].axes.clear();
  }
  result.reduction = CombinerOf(global.dtype());
  const Shape shape = WithoutLayout(instruction.shape());
  Sharding wanted = context.Wanted(instruction);
  wanted.manual = result.manual;
  const double by_parts = context.module().planner->Cost(result, wanted, shape);
  if (context.ReshardCost(value, gathered) <= by_parts) return LocalizeByChoice(instruction, context);

  Builder& builder = context.builder();
  absl::Status status;
  std::vector<Instruction*> starts = ReplicatedStarts(instruction, 1, context, &status);
  GW_RETURN_IF_ERROR(status);
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, kept));
  const DimVector sizes = ShardShape(shape, result).dims();
  std::vector<Instruction*> whole(global.rank(),
                                  builder.Index(0));  // starts and sizes along dimensions that are not cut
  DimVector rest = local->shape().dims();
  for (int64_t d = 0; d < global.rank(); ++d) {
    if (kept.IsSplit(d)) continue;
    whole[d] = ClampedStart(starts[d], global.dim(d) - sizes[d], context);
    rest[d] = sizes[d];
  }
  local = builder.DynamicSlice(local, std::move(whole), std::move(rest));
  for (int64_t d : cut) {
    Instruction* start = ClampedStart(starts[d], global.dim(d) - sizes[d], context);
    local = OwnPart(local, kept, global, d, start, sizes[d], context);
  }
  context.Set(instruction, local, result);
  return absl::OkStatus();
}

absl::Status LocalizeDynamicUpdateSlice(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  const LocalValue& update = context.Value(*instruction.operand(1));
  const Shape global = value.global;
  Sharding wanted = context.Wanted(instruction);
  std::vector<int64_t> cut;
  for (int64_t d = 0; d < global.rank(); ++d) {
    if (wanted.IsSplit(d) && update.global.dim(d) != global.dim(d)) cut.push_back(d);
  }
  if (cut.empty() || !SameMesh(wanted.mesh, context.mesh())) return LocalizeByRule(instruction, context);

  // No communication but for the update, which every device must see whole along the cut dimensions.
  wanted.unreduced.clear();
  Sharding update_sharding = wanted;
  for (int64_t d : cut) update_sharding.dims[d].axes.clear();
  absl::Status status;
  std::vector<Instruction*> starts = ReplicatedStarts(instruction, 2, context, &status);
  GW_RETURN_IF_ERROR(status);
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, wanted));
  GW_ASSIGN_OR_RETURN(Instruction * part, context.Reshard(update, update_sharding));
  for (int64_t d = 0; d < global.rank(); ++d) {
    starts[d] = ClampedStart(starts[d], global.dim(d) - update.global.dim(d), context);
  }
  context.Set(instruction, WithOwnPartOf(part, local, wanted, global, cut, std::move(starts), context), wanted);
  return absl::OkStatus();
}

}  // namespace gangway::partition
