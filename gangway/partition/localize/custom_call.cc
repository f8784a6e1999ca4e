// Custom calls: sharding annotations and the borders of manual regions; any other runs whole on every device unless it
// has a rule.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

// The annotation holds: what follows sees the value exactly so.
absl::Status LocalizeSharding(const Instruction& instruction, Context& context) {
  const LocalValue value = context.Value(*instruction.operand(0));
  Sharding wanted = context.Wanted(instruction);
  if (wanted.manual.empty()) wanted.manual = value.sharding.manual;
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, wanted));
  context.Set(instruction, {LocalValue{local, wanted, value.global, value.origin}});
  return absl::OkStatus();
}

AxisList AxesIn(const AxisList& axes, const AxisList& set, bool wanted) {
  AxisList found;
  for (const AxisRef& ref : axes) {
    if (Overlaps(set, ref) == wanted) found.push_back(ref);
  }
  return found;
}

// `free` with the manual axes that `annotated` puts on each dimension before its own: the two tilings then nest, and
// the shard of one is the shard of the other.
Sharding WithManualSplit(const Sharding& free, const Sharding& annotated, const AxisList& manual) {
  Sharding result = free;
  for (int64_t d = 0; d < free.rank(); ++d) {
    result.dims[d].axes = AxesIn(annotated.dims[d].axes, manual, true);
    const AxisList& own = free.dims[d].axes;
    result.dims[d].axes.insert(result.dims[d].axes.end(), own.begin(), own.end());
  }
  result.manual = annotated.manual;
  return result;
}

AxisList OpenedAxes(const Sharding& inside, const Sharding& outside) {
  return AxesIn(inside.manual, outside.manual, false);
}

// Into a manual region: the operand split over the manual axes already has the shape of the region.
absl::Status LocalizeFullToShard(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  Sharding result = context.Wanted(instruction);
  result.unreduced.clear();
  const Sharding annotated = context.Wanted(*instruction.operand(0));
  const Sharding outside = WithManualSplit(result, annotated, OpenedAxes(result, annotated));
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, outside));
  context.Set(instruction, {LocalValue{local, result, WithoutLayout(instruction.shape()), nullptr}});
  return absl::OkStatus();
}

// Out of it: nothing moves, the parts are seen as one array again.
absl::Status LocalizeShardToFull(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  const Sharding annotated = context.Wanted(instruction);
  Sharding inside = value.sharding;
  inside.unreduced.clear();
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, inside));
  const Sharding result = WithManualSplit(inside, annotated, OpenedAxes(inside, annotated));
  context.Set(instruction, {LocalValue{local, result, WithoutLayout(instruction.shape()), nullptr}});
  return absl::OkStatus();
}

}  // namespace

absl::Status LocalizeCustomCall(const Instruction& instruction, Context& context) {
  const std::string& target = instruction.attr<hlo::CustomCallAttr>().target;
  if (target == "Sharding" || target == "xla.sdy.FuncResultSharding") return LocalizeSharding(instruction, context);
  if (target == "SPMDFullToShardShape") return LocalizeFullToShard(instruction, context);
  if (target == "SPMDShardToFullShape") return LocalizeShardToFull(instruction, context);
  if (target == "xla.sdy.ShardingGroup") {
    context.Set(instruction, LocalValues{});
    return absl::OkStatus();
  }
  return LocalizeByRule(instruction, context);
}

}  // namespace gangway::partition
