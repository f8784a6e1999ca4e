// Operations whose shards need their neighbours' elements: slice, pad, concatenate, convolution and reduce-window along
// split dimensions. Each shard fetches a window (window.h) where that is cheaper than gathering the dimension.
#include "gangway/partition/window.h"

#include <algorithm>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

// One dimension that an operand's window serves.
struct WindowDimension {
  int64_t operand_dim = 0, result_dim = 0;
  int64_t base = 0;    // first element the first element of the result needs
  int64_t stride = 1;  // elements from one element of the result to the next
  int64_t reach = 1;   // elements one element of the result needs
};

struct WindowChoice {
  enum class Outcome : uint8_t { kNone, kDearer, kChosen };  // no window applies; gathering is cheaper; windows it is
  Outcome outcome = Outcome::kNone;
  OpPlan plan;  // operands and results split along the windows' dimensions too
  std::vector<WindowDimension> dims;
  // Per operand that has windows, in the order of `dims`.
  std::vector<std::vector<WindowPlan>> windows;
};

WindowRequest RequestOf(const WindowDimension& dim, const Shape& operand, const Shape& result, int64_t shards,
                        int64_t shift) {
  return {operand.dim(dim.operand_dim), result.dim(dim.result_dim), shards, dim.base - shift, dim.stride, dim.reach};
}

// The plan by windows when it is cheaper than the rule's. `candidates` are the dimensions that could have a window,
// `windowed` the number of leading operands that do; `shifts` moves operand i's windows (concatenate).
absl::StatusOr<WindowChoice> ChooseWindows(const Instruction& instruction, const rules::OpRule& rule,
                                           std::vector<WindowDimension> candidates, int64_t windowed,
                                           const std::vector<int64_t>& shifts, Context& context) {
  WindowChoice choice;
  const Sharding wanted = context.Wanted(instruction);
  const LocalValue& first = context.Value(*instruction.operand(0));
  if (!SameMesh(wanted.mesh, context.mesh()) || !SameMesh(first.sharding.mesh, context.mesh())) return choice;
  AxisList taken;
  std::vector<AxisList> axes_of;
  for (const WindowDimension& dim : candidates) {
    AxisList axes = wanted.dims[dim.result_dim].axes;
    if (axes.empty()) axes = first.sharding.dims[dim.operand_dim].axes;
    for (const AxisRef& ref : axes) {
      if (Overlaps(taken, ref)) axes.clear();
    }
    if (axes.empty()) continue;
    taken.insert(taken.end(), axes.begin(), axes.end());
    axes_of.push_back(axes);
    choice.dims.push_back(dim);
  }
  if (choice.dims.empty()) return choice;

  OpPlanOptions options = OptionsFor(instruction);
  GW_ASSIGN_OR_RETURN(const OpPlan by_rule, PlanOp(instruction, rule, options, context));
  options.without = taken;
  options.partial_ok.clear();
  GW_ASSIGN_OR_RETURN(choice.plan, PlanOp(instruction, rule, options, context));
  OpPlan& plan = choice.plan;
  const Shape result = WithoutLayout(instruction.shape());
  for (size_t i = 0; i < choice.dims.size(); ++i) plan.results[0].dims[choice.dims[i].result_dim].axes = axes_of[i];
  double cost = ResultCost(instruction, 0, plan.results[0], context);
  for (int64_t operand = 0; operand < instruction.operand_count(); ++operand) {
    const LocalValue& value = context.Value(*instruction.operand(operand));
    if (operand < windowed) {
      choice.windows.emplace_back();
      for (size_t i = 0; i < choice.dims.size(); ++i) {
        plan.operands[operand].dims[choice.dims[i].operand_dim].axes = axes_of[i];
        const WindowRequest request = RequestOf(choice.dims[i], value.global, result, ProductOf(axes_of[i]),
                                                operand < static_cast<int64_t>(shifts.size()) ? shifts[operand] : 0);
        choice.windows.back().push_back(PlanWindow(request));
      }
      for (size_t i = 0; i < choice.dims.size(); ++i) {
        cost += WindowCost(choice.windows.back()[i], value.global, plan.operands[operand], choice.dims[i].operand_dim);
      }
    }
    cost += context.ReshardCost(value, plan.operands[operand]);
  }
  // The rule's plan repeats the work on every device; its cost says how much.
  choice.outcome = by_rule.cost <= cost ? WindowChoice::Outcome::kDearer : WindowChoice::Outcome::kChosen;
  return choice;
}

// The operand with its windows fetched.
absl::StatusOr<Instruction*> Windowed(const WindowChoice& choice, const Instruction& instruction, int64_t operand,
                                      Instruction* fill, Context& context) {
  const LocalValue& value = context.Value(*instruction.operand(operand));
  const Sharding& sharding = choice.plan.operands[operand];
  GW_ASSIGN_OR_RETURN(Instruction * local, context.Reshard(value, sharding));
  for (size_t i = 0; i < choice.dims.size(); ++i) {
    local = EmitWindow(choice.windows[operand][i], local, choice.dims[i].operand_dim, sharding, fill, context);
  }
  return local;
}

absl::Status WithoutWindows(const WindowChoice& choice, const Instruction& instruction, Context& context) {
  return choice.outcome == WindowChoice::Outcome::kDearer ? LocalizeByChoice(instruction, context)
                                                          : LocalizeByRule(instruction, context);
}

bool IsWindowed(const WindowChoice& choice, int64_t operand_dim) {
  return std::any_of(choice.dims.begin(), choice.dims.end(),
                     [&](const WindowDimension& dim) { return dim.operand_dim == operand_dim; });
}

}  // namespace

absl::Status LocalizeSlice(const Instruction& instruction, Context& context) {
  const auto& attr = instruction.attr<hlo::SliceAttr>();
  const Shape& operand = instruction.operand(0)->shape();
  std::vector<WindowDimension> candidates;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (instruction.shape().dim(d) != operand.dim(d)) candidates.push_back({d, d, attr.starts[d], attr.strides[d], 1});
  }
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const WindowChoice choice, ChooseWindows(instruction, rule, candidates, 1, {}, context));
  if (choice.outcome != WindowChoice::Outcome::kChosen) return WithoutWindows(choice, instruction, context);

  GW_ASSIGN_OR_RETURN(Instruction * local, Windowed(choice, instruction, 0, nullptr, context));
  DimVector starts = attr.starts, limits = attr.limits;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (IsWindowed(choice, d)) starts[d] = 0;
    if (IsWindowed(choice, d) || local->shape().dim(d) != operand.dim(d)) limits[d] = local->shape().dim(d);
  }
  context.Set(instruction, context.builder().Slice(local, starts, limits, attr.strides), choice.plan.results[0]);
  return absl::OkStatus();
}

absl::Status LocalizePad(const Instruction& instruction, Context& context) {
  const auto& attr = instruction.attr<hlo::PadAttr>();
  std::vector<WindowDimension> candidates;
  for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
    const hlo::PadDim& pad = attr.dims[d];
    if (pad != hlo::PadDim{} && pad.interior == 0) candidates.push_back({d, d, -pad.low, 1, 1});
  }
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const WindowChoice choice, ChooseWindows(instruction, rule, candidates, 1, {}, context));
  if (choice.outcome != WindowChoice::Outcome::kChosen) return WithoutWindows(choice, instruction, context);

  GW_ASSIGN_OR_RETURN(Instruction * fill, context.Replicate(context.Value(*instruction.operand(1))));
  GW_ASSIGN_OR_RETURN(Instruction * local, Windowed(choice, instruction, 0, fill, context));
  std::vector<hlo::PadDim> pad = attr.dims;
  for (const WindowDimension& dim : choice.dims) pad[dim.operand_dim] = {};
  context.Set(instruction, context.builder().Pad(local, fill, pad), choice.plan.results[0]);
  return absl::OkStatus();
}

absl::Status LocalizeConcatenate(const Instruction& instruction, Context& context) {
  const int64_t joined = instruction.attr<hlo::DimensionsAttr>().dims[0];
  std::vector<int64_t> offsets;
  int64_t offset = 0;
  for (const Instruction* operand : instruction.operands()) {
    offsets.push_back(offset);
    offset += operand->shape().dim(joined);
  }
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const WindowChoice choice, ChooseWindows(instruction, rule, {{joined, joined, 0, 1, 1}},
                                                               instruction.operand_count(), offsets, context));
  if (choice.outcome != WindowChoice::Outcome::kChosen) return WithoutWindows(choice, instruction, context);

  // Every part gives the shard's elements as if it were alone; the position says which one counts.
  Builder& builder = context.builder();
  const Sharding& result = choice.plan.results[0];
  const Shape shape = ShardShape(WithoutLayout(instruction.shape()), result);
  const Shape index_shape = WithDType(shape, DType::kS32);
  Instruction* first = context.ShardOffset(result, WithoutLayout(instruction.shape()), joined);
  Instruction* index =
      builder.Binary(Opcode::kAdd, builder.Iota(index_shape, joined), builder.BroadcastScalar(first, index_shape));
  Instruction* value = nullptr;
  for (int64_t i = instruction.operand_count(); i-- > 0;) {
    GW_ASSIGN_OR_RETURN(Instruction * part, Windowed(choice, instruction, i, nullptr, context));
    if (value == nullptr) {
      value = part;
      continue;
    }
    Instruction* bound = builder.BroadcastScalar(builder.Index(offsets[i + 1]), index_shape);
    value = builder.Select(builder.Compare(hlo::ComparisonDirection::kLt, index, bound), part, value);
  }
  context.Set(instruction, value, result);
  return absl::OkStatus();
}

absl::Status LocalizeConvolution(const Instruction& instruction, Context& context) {
  const auto& conv = instruction.attr<hlo::ConvolutionAttr>();
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  std::vector<WindowDimension> candidates;
  for (size_t i = 0; i < conv.window.size(); ++i) {
    const hlo::WindowDim& window = conv.window[i];
    const int64_t d = conv.input_spatial[i];
    const int factor = rule.operands[0][d].empty() ? -1 : rule.operands[0][d][0];
    if (window.base_dilation != 1 || factor < 0 || rule.factors[factor].kind != rules::FactorKind::kPermutation)
      continue;
    candidates.push_back(
        {d, conv.output_spatial[i], -window.pad_low, window.stride, (window.size - 1) * window.window_dilation + 1});
  }
  GW_ASSIGN_OR_RETURN(const WindowChoice choice, ChooseWindows(instruction, rule, candidates, 1, {}, context));
  if (choice.outcome != WindowChoice::Outcome::kChosen) return WithoutWindows(choice, instruction, context);

  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> operands, PreparedOperands(instruction, rule, choice.plan, context));
  Builder& builder = context.builder();
  Instruction* zero = builder.Constant(Literal(Shape::Scalar(operands[0]->shape().dtype())));
  for (size_t i = 0; i < choice.dims.size(); ++i) {
    operands[0] = EmitWindow(choice.windows[0][i], operands[0], choice.dims[i].operand_dim, choice.plan.operands[0],
                             zero, context);
  }
  EmitLocal(instruction, choice.plan, std::move(operands), context);
  auto& local = context.Value(instruction).local->mutable_attr<hlo::ConvolutionAttr>();
  for (size_t i = 0; i < conv.window.size(); ++i) {
    if (IsWindowed(choice, conv.input_spatial[i])) local.window[i].pad_low = local.window[i].pad_high = 0;
  }
  return absl::OkStatus();
}

absl::Status LocalizeReduceWindow(const Instruction& instruction, Context& context) {
  const auto& window = instruction.attr<hlo::WindowAttr>().window;
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  std::vector<WindowDimension> candidates;
  for (size_t d = 0; d < window.size(); ++d) {
    const bool trivial = window[d] == hlo::WindowDim{};
    if (trivial || window[d].base_dilation != 1) continue;
    const int64_t dim = static_cast<int64_t>(d);
    candidates.push_back(
        {dim, dim, -window[d].pad_low, window[d].stride, (window[d].size - 1) * window[d].window_dilation + 1});
  }
  if (instruction.operand_count() != 2) return LocalizeByRule(instruction, context);
  GW_ASSIGN_OR_RETURN(const WindowChoice choice, ChooseWindows(instruction, rule, candidates, 1, {}, context));
  if (choice.outcome != WindowChoice::Outcome::kChosen) return WithoutWindows(choice, instruction, context);

  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> operands, PreparedOperands(instruction, rule, choice.plan, context));
  for (size_t i = 0; i < choice.dims.size(); ++i) {
    operands[0] = EmitWindow(choice.windows[0][i], operands[0], choice.dims[i].operand_dim, choice.plan.operands[0],
                             operands[1], context);
  }
  EmitLocal(instruction, choice.plan, std::move(operands), context);
  auto& local = context.Value(instruction).local->mutable_attr<hlo::WindowAttr>().window;
  for (const WindowDimension& dim : choice.dims) local[dim.operand_dim].pad_low = local[dim.operand_dim].pad_high = 0;
  return absl::OkStatus();
}

}  // namespace gangway::partition
