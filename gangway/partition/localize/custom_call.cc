// Custom calls: sharding annotations and the borders of manual regions; any other runs whole on every device unless it
// has a rule.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/host_callback.h"
#include "gangway/hlo/scan_call.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/scan.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// The second is the first with some axes gathered.
bool IsGathered(const Sharding& from, const Sharding& to) {
  if (!SameMesh(from.mesh, to.mesh) || !from.unreduced.empty()) return false;
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (CommonPrefix(to.dims[d].axes, from.dims[d].axes) != to.dims[d].axes) return false;
  }
  return true;
}

// The annotation holds for completion, and what needs the value so will get it so. A gather waits until then: what can
// work on the parts never asks for it. Anything else is brought about here; whoever would undo it may use the value
// from before.
absl::Status LocalizeSharding(const Instruction& instruction, Context& context) {
  const LocalValue value = context.Value(*instruction.operand(0));
  Sharding wanted = context.Wanted(instruction);
  if (wanted.manual.empty()) wanted.manual = value.sharding.manual;
  if (wanted.manual == value.sharding.manual && IsGathered(value.sharding, wanted)) {
    context.Set(instruction, {value});
    return absl::OkStatus();
  }
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, wanted));
  const LocalValue annotated{local, wanted, value.global, value.origin, value.key};
  context.Set(instruction, {annotated});
  context.Alias(annotated, value);
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
// the shard of one is the shard of the other. A sum over manual axes that is annotated as pending stays so: the parts
// are the summands.
Sharding WithManualSplit(const Sharding& free, const Sharding& annotated, const AxisList& manual) {
  Sharding result = free;
  for (int64_t d = 0; d < free.rank(); ++d) {
    result.dims[d].axes = AxesIn(annotated.dims[d].axes, manual, true);
    const AxisList& own = free.dims[d].axes;
    result.dims[d].axes.insert(result.dims[d].axes.end(), own.begin(), own.end());
  }
  result.unreduced = AxesIn(annotated.unreduced, manual, true);
  result.manual = annotated.manual;
  return result;
}

AxisList OpenedAxes(const Sharding& inside, const Sharding& outside) {
  return AxesIn(inside.manual, outside.manual, false);
}

// A summand inside has the shape of the sum outside. Being another value it needs another instruction: the versions of
// a value are found by its instruction and shape.
Instruction* OnTheOtherSide(Instruction* local, const Sharding& outside, Context& context) {
  return outside.unreduced.empty() ? local : context.builder().Add(Opcode::kCopy, {local});
}

// Into a manual region: the operand split over the manual axes already has the shape of the region.
absl::Status LocalizeFullToShard(const Instruction& instruction, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(0));
  Sharding result = context.Wanted(instruction);
  result.unreduced.clear();
  const Sharding annotated = context.Wanted(*instruction.operand(0));
  const Sharding outside = WithManualSplit(result, annotated, OpenedAxes(result, annotated));
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, outside));
  local = OnTheOtherSide(local, outside, context);
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
  local = OnTheOtherSide(local, result, context);
  context.Set(instruction, {LocalValue{local, result, WithoutLayout(instruction.shape()), nullptr}});
  return absl::OkStatus();
}

// Nothing is left of the question in the program; the answer goes beside it.
absl::Status LocalizeInspection(const Instruction& instruction, Context& context) {
  const LocalValue value = context.Value(*instruction.operand(0));
  Inspection inspection = {instruction.attr<hlo::CustomCallAttr>().backend_config, value.sharding};
  inspection.sharding.unreduced.clear();
  context.module().inspections.push_back(std::move(inspection));
  context.Set(instruction, {value});
  return absl::OkStatus();
}

// What device `root` has, on every device.
Instruction* BroadcastFrom(int64_t root, Instruction* local, Context& context) {
  std::vector<int64_t> group = {root};
  for (int64_t device = 0; device < context.mesh()->size(); ++device) {
    if (device != root) group.push_back(device);
  }
  hlo::CollectiveAttr attr;
  attr.groups.groups.push_back(std::move(group));
  attr.channel_id = context.module().next_channel++;
  return context.builder().Add(Opcode::kCollectiveBroadcast, {local}, std::move(attr), {},
                               WithoutLayout(local->shape()));
}

// Every device calls with the parts it has, or with the whole array where not all parts are alike. For calls without
// results.
absl::Status LocalizeOnParts(const Instruction& instruction, Context& context) {
  std::vector<Instruction*> operands;
  std::vector<Shape> shapes;
  for (const Instruction* operand : instruction.operands()) {
    const LocalValue& value = context.Value(*operand);
    Instruction* local = value.local;
    if (value.global.IsArray()) {
      Sharding summed = value.sharding;
      summed.unreduced.clear();
      const bool even = IsEven(value.global, summed);
      GW_ASSIGN_OR_RETURN(local, even ? context.Reshard(value, summed) : context.Replicate(value));
    }
    operands.push_back(local);
    shapes.push_back(WithRowMajorLayout(local->shape()));
  }
  Instruction* local = context.Clone(instruction, WithoutLayout(instruction.shape()), std::move(operands));
  auto& call = local->mutable_attr<hlo::CustomCallAttr>();
  if (call.operand_shapes_with_layout.has_value()) call.operand_shapes_with_layout = std::move(shapes);
  SetResults(instruction, local, ReplicatedPlan(instruction, context).results, context);
  return absl::OkStatus();
}

// In a manual region each device calls for itself, with its part. Elsewhere one device calls, with the whole arrays,
// and sends the others what comes back.
absl::Status LocalizeHostCallback(const Instruction& instruction, Context& context) {
  if (instruction.frontend_attributes().contains(std::string(hlo::kCallsWithParts))) {
    return LocalizeOnParts(instruction, context);
  }
  GW_RETURN_IF_ERROR(LocalizeReplicated(instruction, context));
  const auto caller = instruction.frontend_attributes().find(std::string(hlo::kCallingDevice));
  if (caller == instruction.frontend_attributes().end()) return absl::OkStatus();
  int64_t device = -1;
  if (!absl::SimpleAtoi(caller->second, &device) || device < 0 || device >= context.mesh()->size()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no device ", caller->second, " to call from"));
  }
  LocalValues values = context.Values(instruction);
  for (LocalValue& value : values) {
    if (value.global.IsArray()) value.local = BroadcastFrom(device, value.local, context);
  }
  context.Set(instruction, std::move(values));
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
  if (target == hlo::kInspectSharding) return LocalizeInspection(instruction, context);
  if (target == hlo::kDceSink) return LocalizeOnParts(instruction, context);
  if (target == hlo::kHostCallback) return LocalizeHostCallback(instruction, context);
  if (const auto dim = hlo::ScanDimension(instruction)) return LocalizeScanCall(instruction, *dim, context);
  return LocalizeByRule(instruction, context);
}

}  // namespace gangway::partition
