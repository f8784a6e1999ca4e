// dynamic-slice along split dimensions. Starts are clamped in the whole array first; every device then takes what lies
// in its shard.
#include <utility>
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

  // Everyone contributes what it has of the slice; the parts add up. Worth it when less moves than by gathering. What a
  // loop reads part by part and does not change is gathered before the loop, once for all its parts.
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
  const double by_gather = value.unchanged ? context.module().planner->Cost(value.sharding, gathered, global)
                                           : context.ReshardCost(value, gathered);
  const double share = static_cast<double>(shape.ElementCount()) / static_cast<double>(global.ElementCount());
  const int64_t grows = ShardShape(global, gathered).ByteSize() - ShardShape(global, kept).ByteSize();
  const int64_t budget = context.module().gathered_budget;
  if (value.unchanged && by_gather * share < by_parts && grows <= budget) {
    kept = result = gathered;
    kept.unreduced.clear();
    result.unreduced.clear();
    cut.clear();
  } else if (by_gather <= by_parts) {
    return LocalizeByChoice(instruction, context);
  }

  Builder& builder = context.builder();
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> starts, ReplicatedStarts(instruction, 1, context));
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

}  // namespace gangway::partition
