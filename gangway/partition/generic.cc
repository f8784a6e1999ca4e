#include "gangway/partition/generic.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using rules::OpRule;

// Dimensions of an operand that are split reduction factors.
std::vector<int64_t> ReducedDims(const OpRule& rule, const OpPlan& plan, size_t operand) {
  std::vector<int64_t> dims;
  for (size_t d = 0; d < rule.operands[operand].size(); ++d) {
    for (int factor : rule.operands[operand][d]) {
      if (rule.factors[factor].kind == rules::FactorKind::kReduction && !plan.factors[factor].empty()) {
        dims.push_back(static_cast<int64_t>(d));
      }
    }
  }
  return dims;
}

Shape WithLayoutOf(Shape shape, const Shape& layouts) {
  shape.set_layout(layouts.layout());
  for (size_t i = 0; i < shape.tuple().size(); ++i) {
    shape.mutable_tuple()[i] = WithLayoutOf(shape.tuple()[i], layouts.tuple()[i]);
  }
  return shape;
}

// The group of a grouped convolution is its rule's first factor; a window that covers a whole dimension follows the
// kernel's extent.
void AdaptConvolution(const OpPlan& plan, Instruction* local) {
  auto& conv = local->mutable_attr<hlo::ConvolutionAttr>();
  for (size_t i = 0; i < conv.window.size(); ++i) {
    conv.window[i].size = local->operand(1)->shape().dim(conv.kernel_spatial[i]);
  }
  if (plan.factors.empty()) return;
  const int64_t parts = ProductOf(plan.factors[0]);
  if (conv.feature_groups > 1) conv.feature_groups /= parts;
  if (conv.batch_groups > 1) conv.batch_groups /= parts;
}

// A custom call that fixes its layouts names every operand's shape, and that of its result has a layout.
void AdaptLayouts(const Instruction& instruction, hlo::CustomCallAttr* call, Instruction* local) {
  if (!call->operand_shapes_with_layout) return;
  for (size_t i = 0; i < call->operand_shapes_with_layout->size(); ++i) {
    Shape& shape = (*call->operand_shapes_with_layout)[i];
    for (int64_t d = 0; d < shape.rank(); ++d)
      shape.set_dim(d, local->operand(static_cast<int64_t>(i))->shape().dim(d));
  }
  local->set_shape(WithLayoutOf(local->shape(), instruction.shape()));
}

void AdaptAttributes(const Instruction& instruction, const OpPlan& plan, Instruction* local) {
  if (auto* slice = std::get_if<hlo::SliceAttr>(&local->mutable_attributes())) {
    const Shape& whole = instruction.operand(0)->shape();
    for (int64_t d = 0; d < whole.rank(); ++d) {
      if (local->operand(0)->shape().dim(d) != whole.dim(d)) slice->limits[d] = local->operand(0)->shape().dim(d);
    }
  } else if (auto* dynamic = std::get_if<hlo::DynamicSliceAttr>(&local->mutable_attributes())) {
    dynamic->sizes = local->shape().dims();
  } else if (auto* gather = std::get_if<hlo::GatherAttr>(&local->mutable_attributes())) {
    const Shape& whole = instruction.operand(0)->shape();
    for (int64_t d = 0; d < whole.rank(); ++d) {
      if (gather->slice_sizes[d] == whole.dim(d)) gather->slice_sizes[d] = local->operand(0)->shape().dim(d);
    }
  } else if (instruction.opcode() == Opcode::kConvolution) {
    AdaptConvolution(plan, local);
  } else if (auto* call = std::get_if<hlo::CustomCallAttr>(&local->mutable_attributes())) {
    AdaptLayouts(instruction, call, local);
  }
}

}  // namespace

bool IsIdentity(const Instruction& scalar, Reduction reduction) {
  if (scalar.opcode() == Opcode::kBroadcast || scalar.opcode() == Opcode::kReshape) {
    return IsIdentity(*scalar.operand(0), reduction);
  }
  if (scalar.opcode() != Opcode::kConstant || scalar.shape().rank() != 0) return false;
  const Literal& literal = *scalar.attr<hlo::ConstantAttr>().literal;
  return literal.bytes() == ReductionIdentity(reduction, literal.shape().dtype()).bytes();
}

absl::StatusOr<std::vector<Instruction*>> PreparedOperands(const Instruction& instruction, const OpRule& rule,
                                                           const OpPlan& plan, Context& context) {
  std::vector<Instruction*> operands;
  AxisList partial = plan.results.empty() ? AxisList{} : plan.results[0].unreduced;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    const Instruction& source = *instruction.operand(i);
    if (source.shape().IsTuple())
      return absl::UnimplementedError(absl::StrCat("tuple operand of ", instruction.ToString()));
    const LocalValue& value = context.Value(source);
    if (!source.shape().IsArray()) {
      operands.push_back(value.local);
      continue;
    }
    Sharding sharding = plan.operands[i];
    const bool accumulated =
        std::find(rule.accumulated.begin(), rule.accumulated.end(), static_cast<int>(i)) != rule.accumulated.end();
    if (accumulated && !partial.empty() && !IsIdentity(source, plan.reduction)) {
      sharding.unreduced = partial;
      sharding.reduction = plan.reduction;
    }
    GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, sharding));
    const std::vector<int64_t> reduced = ReducedDims(rule, plan, static_cast<size_t>(i));
    if (!reduced.empty() && !IsEven(value.global, sharding)) {
      Instruction* fill = context.builder().Constant(ReductionIdentity(plan.reduction, value.global.dtype()));
      local = context.MaskPadding(local, sharding, value.global, reduced, fill);
    }
    operands.push_back(local);
  }
  return operands;
}

void SetResults(const Instruction& instruction, Instruction* result, const Shardings& shardings, Context& context) {
  if (!instruction.shape().IsTuple()) {
    context.Set(instruction, result, shardings[0]);
    return;
  }
  const std::vector<Shape> globals = Leaves(instruction.shape());
  const std::vector<Instruction*> leaves = context.Unpack(result);
  LocalValues values;
  for (size_t i = 0; i < leaves.size(); ++i) {
    values.push_back({leaves[i], shardings[i], WithoutLayout(globals[i]), nullptr});
  }
  context.Set(instruction, std::move(values));
}

Instruction* LocalClone(const Instruction& instruction, const OpPlan& plan, std::vector<Instruction*> operands,
                        Context& context) {
  const Shape shape = ShardShape(WithoutLayout(instruction.shape()), plan.results);
  Instruction* local = context.Clone(instruction, shape, std::move(operands));
  AdaptAttributes(instruction, plan, local);
  return local;
}

void EmitLocal(const Instruction& instruction, const OpPlan& plan, std::vector<Instruction*> operands,
               Context& context) {
  Instruction* local = LocalClone(instruction, plan, std::move(operands), context);
  SetResults(instruction, local, plan.results, context);
}

OpPlan ReplicatedPlan(const Instruction& instruction, Context& context) {
  OpPlan plan;
  AxisList manual;
  for (const Instruction* operand : instruction.operands()) {
    const LocalValues& values = context.Values(*operand);
    for (const LocalValue& value : values) {
      if (!value.sharding.manual.empty()) manual = value.sharding.manual;
    }
  }
  if (instruction.has_sharding() && !instruction.shardings()->empty() && !context.Wanted(instruction).manual.empty()) {
    manual = context.Wanted(instruction).manual;
  }
  for (const Instruction* operand : instruction.operands()) {
    plan.operands.push_back(Context::WithManual(context.Replicated(operand->shape().rank()), manual));
  }
  for (const Shape& leaf : Leaves(instruction.shape())) {
    plan.results.push_back(Context::WithManual(context.Replicated(leaf.rank()), manual));
  }
  return plan;
}

// Says where an operand is gathered because the operation needs a dimension whole and nothing better is known.
static void ReportGathers(const Instruction& instruction, const OpRule& rule, const OpPlan& plan, Context& context) {
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    if (!instruction.operand(i)->shape().IsArray()) continue;
    const Sharding& held = context.Value(*instruction.operand(i)).sharding;
    for (int64_t d = 0; d < held.rank(); ++d) {
      if (!held.IsSplit(d) || plan.operands[i].IsSplit(d) || rule.operands[i][d].empty()) continue;
      const rules::FactorKind kind = rule.factors[rule.operands[i][d][0]].kind;
      if (kind == rules::FactorKind::kPassThrough || kind == rules::FactorKind::kReduction) continue;
      const AxisList kept = plan.operands[i].DimAxes();  // on other dimensions
      const AxisList& axes = held.dims[d].axes;
      if (std::all_of(axes.begin(), axes.end(), [&](const AxisRef& ref) { return Contains(kept, ref); })) continue;
      context.ReportFallback(instruction, absl::StrCat(hlo::OpcodeName(instruction.opcode()), " along dimension ", d,
                                                       " of operand ", i, ", which is split: gathered"));
      return;
    }
  }
}

absl::Status LocalizeWith(const Instruction& instruction, const OpRule& rule, const OpPlanOptions& options,
                          Context& context) {
  GW_ASSIGN_OR_RETURN(const OpPlan plan, PlanOp(instruction, rule, options, context));
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> operands, PreparedOperands(instruction, rule, plan, context));
  EmitLocal(instruction, plan, std::move(operands), context);
  return absl::OkStatus();
}

absl::Status LocalizeByRule(const Instruction& instruction, Context& context) {
  GW_ASSIGN_OR_RETURN(const OpRule rule, rules::RuleFor(instruction));
  if (rule.form != rules::RuleForm::kFactors) return LocalizeReplicated(instruction, context);
  GW_ASSIGN_OR_RETURN(const OpPlan plan, PlanOp(instruction, rule, OptionsFor(instruction), context));
  ReportGathers(instruction, rule, plan, context);
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> operands, PreparedOperands(instruction, rule, plan, context));
  EmitLocal(instruction, plan, std::move(operands), context);
  return absl::OkStatus();
}

absl::Status LocalizeByChoice(const Instruction& instruction, Context& context) {
  GW_ASSIGN_OR_RETURN(const OpRule rule, rules::RuleFor(instruction));
  return LocalizeWith(instruction, rule, OptionsFor(instruction), context);
}

absl::Status LocalizeReplicated(const Instruction& instruction, Context& context) {
  const OpPlan plan = ReplicatedPlan(instruction, context);
  std::vector<Instruction*> operands;
  bool split = false;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    const LocalValues& values = context.Values(*instruction.operand(i));
    std::vector<Instruction*> leaves;
    for (const LocalValue& value : values) {
      split |= !value.sharding.IsReplicated();
      GW_ASSIGN_OR_RETURN(Instruction * leaf, context.Replicate(value));
      leaves.push_back(leaf);
    }
    operands.push_back(context.Pack(instruction.operand(i)->shape(), leaves));
  }
  for (size_t leaf = 0; leaf < plan.results.size(); ++leaf) {
    split |= !context.Wanted(instruction, static_cast<int64_t>(leaf)).IsReplicated();
  }
  if (split) {
    GW_ASSIGN_OR_RETURN(const OpRule rule, rules::RuleFor(instruction));
    context.ReportFallback(instruction, rule.reason.empty() ? "no plan for this sharding" : rule.reason);
  }
  EmitLocal(instruction, plan, std::move(operands), context);
  return absl::OkStatus();
}

}  // namespace gangway::partition
