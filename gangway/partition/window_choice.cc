#include "gangway/partition/window_choice.h"

#include <algorithm>
#include <utility>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

class WindowChooser {
 public:
  WindowChooser(const Instruction& instruction, const rules::OpRule& rule, std::vector<WindowDimension> candidates,
                int64_t windowed, Context& context)
      : instruction_(instruction),
        rule_(rule),
        candidates_(std::move(candidates)),
        windowed_(windowed),
        context_(context),
        options_(OptionsFor(instruction)) {}

  absl::StatusOr<WindowChoice> Run() {
    const Sharding& held = HeldBy(0);
    if (!SameMesh(context_.Wanted(instruction_).mesh, context_.mesh()) || !SameMesh(held.mesh, context_.mesh())) {
      return best_;
    }
    GW_RETURN_IF_ERROR(Extend(0));
    if (best_.outcome == WindowChoice::Outcome::kNone) return best_;
    // The rule's plan repeats the work on every device; its cost says how much.
    GW_ASSIGN_OR_RETURN(const OpPlan by_rule, PlanOp(instruction_, rule_, options_, context_));
    if (by_rule.cost <= best_.plan.cost) best_.outcome = WindowChoice::Outcome::kDearer;
    return best_;
  }

 private:
  const LocalValue& ValueOf(int64_t operand) const { return context_.Value(*instruction_.operand(operand)); }
  const Sharding& HeldBy(int64_t operand) const { return ValueOf(operand).sharding; }

  // What completion wants on the other side, or what the operand has.
  std::vector<AxisList> AxesFor(const WindowDimension& dim) const {
    std::vector<AxisList> choices;
    if (!dim.IsContracted()) {
      choices.push_back(context_.Wanted(instruction_).dims[dim.result_dim].axes);
    } else if (SameMesh(HeldBy(1).mesh, context_.mesh())) {
      choices.push_back(HeldBy(1).dims[dim.kernel_dim].axes);
    }
    const AxisList& own = HeldBy(0).dims[dim.operand_dim].axes;
    if (choices.empty() || choices[0] != own) choices.push_back(own);
    std::erase_if(choices, [&](const AxisList& axes) {
      return axes.empty() || ProductOf(axes) > ResultsAlong(dim) ||
             std::any_of(axes.begin(), axes.end(), [&](const AxisRef& ref) { return Overlaps(taken_, ref); });
    });
    return choices;
  }

  int64_t ResultsAlong(const WindowDimension& dim) const {
    if (dim.IsContracted()) return ValueOf(1).global.dim(dim.kernel_dim);
    return Leaves(instruction_.shape())[0].dim(dim.result_dim);
  }

  // All choices for candidates from `next` on, added to those made.
  absl::Status Extend(size_t next) {
    if (next == candidates_.size()) return dims_.empty() ? absl::OkStatus() : Consider();
    GW_RETURN_IF_ERROR(Extend(next + 1));
    const WindowDimension& dim = candidates_[next];
    for (const WindowDimension& chosen : dims_) {
      if (chosen.operand_dim == dim.operand_dim) return absl::OkStatus();
    }
    for (const AxisList& axes : AxesFor(dim)) {
      const AxisList before = taken_;
      taken_.insert(taken_.end(), axes.begin(), axes.end());
      dims_.push_back(dim);
      axes_.push_back(axes);
      GW_RETURN_IF_ERROR(Extend(next + 1));
      axes_.pop_back();
      dims_.pop_back();
      taken_ = before;
    }
    return absl::OkStatus();
  }

  absl::Status Consider() {
    OpPlanOptions options = options_;
    options.without = taken_;
    options.partial_ok.clear();
    GW_ASSIGN_OR_RETURN(OpPlan plan, PlanOp(instruction_, rule_, options, context_));
    std::vector<WindowPlan> windows;
    for (size_t i = 0; i < dims_.size(); ++i) {
      if (!Split(dims_[i], axes_[i], &plan)) return absl::OkStatus();
      windows.push_back(
          PlanWindow({ValueOf(0).global.dim(dims_[i].operand_dim), ResultsAlong(dims_[i]), ProductOf(axes_[i]),
                      dims_[i].base, dims_[i].stride, dims_[i].reach, dims_[i].dilation}));
    }
    plan.cost = plan.work / static_cast<double>(ProductOf(taken_));
    for (size_t leaf = 0; leaf < plan.results.size(); ++leaf) {
      plan.cost += ResultCost(instruction_, static_cast<int64_t>(leaf), plan.results[leaf], context_);
    }
    for (int64_t operand = 0; operand < instruction_.operand_count(); ++operand) {
      plan.cost += context_.ReshardCost(ValueOf(operand), plan.operands[operand]);
      for (size_t i = 0; operand < windowed_ && i < dims_.size(); ++i) {
        plan.cost += WindowCost(windows[i], ValueOf(operand).global, plan.operands[operand], dims_[i].operand_dim);
      }
    }
    if (best_.outcome == WindowChoice::Outcome::kChosen && best_.plan.cost <= plan.cost) return absl::OkStatus();
    best_ = {WindowChoice::Outcome::kChosen, std::move(plan), dims_, std::move(windows)};
    return absl::OkStatus();
  }

  // False when the result already is partial by another reduction.
  bool Split(const WindowDimension& dim, const AxisList& axes, OpPlan* plan) const {
    for (int64_t operand = 0; operand < windowed_; ++operand) plan->operands[operand].dims[dim.operand_dim].axes = axes;
    for (Sharding& result : plan->results) {
      if (!dim.IsContracted()) {
        result.dims[dim.result_dim].axes = axes;
        continue;
      }
      if (!result.unreduced.empty() && result.reduction != Reduction::kSum) return false;
      result.unreduced.insert(result.unreduced.end(), axes.begin(), axes.end());
      result.reduction = Reduction::kSum;
    }
    if (dim.IsContracted()) plan->operands[1].dims[dim.kernel_dim].axes = axes;
    return true;
  }

  const Instruction& instruction_;
  const rules::OpRule& rule_;
  const std::vector<WindowDimension> candidates_;
  const int64_t windowed_;
  Context& context_;
  const OpPlanOptions options_;
  std::vector<WindowDimension> dims_;  // chosen so far
  std::vector<AxisList> axes_;         // of them
  AxisList taken_;                     // the same, in one list
  WindowChoice best_;
};

}  // namespace

const WindowDimension* WindowChoice::Along(int64_t operand_dim) const {
  for (const WindowDimension& dim : dims) {
    if (dim.operand_dim == operand_dim) return &dim;
  }
  return nullptr;
}

absl::StatusOr<WindowChoice> ChooseWindows(const Instruction& instruction, const rules::OpRule& rule,
                                           std::vector<WindowDimension> candidates, int64_t windowed,
                                           Context& context) {
  return WindowChooser(instruction, rule, std::move(candidates), windowed, context).Run();
}

absl::Status LocalizeWithoutWindows(const WindowChoice& choice, const Instruction& instruction, Context& context) {
  return choice.outcome == WindowChoice::Outcome::kDearer ? LocalizeByChoice(instruction, context)
                                                          : LocalizeByRule(instruction, context);
}

LocalWindow EmitLocalWindow(const WindowChoice& choice, size_t i, Instruction* operand, Instruction* fill,
                            Context& context) {
  const WindowRequest& request = choice.windows[i].request;
  const int64_t dim = choice.dims[i].operand_dim;
  const Sharding& sharding = choice.plan.operands[0];
  if (!request.IsAligned()) {
    return {EmitDilatedWindow(choice.windows[i], operand, dim, sharding, fill, context), 0, 0, 1, {}};
  }
  const int64_t holes = request.Holes(0), spread = (request.Length() - 1) * request.dilation + 1;
  return {EmitWindow(choice.windows[i], operand, dim, sharding, fill, context),
          holes,
          request.Positions() - holes - spread,
          request.dilation,
          {}};
}

LocalWindow EmitSkewedWindow(const WindowChoice& choice, size_t i, Instruction* operand, Instruction* fill,
                             Context& context) {
  const WindowRequest& request = choice.windows[i].request;
  LocalWindow local;
  local.base_dilation = request.dilation;
  for (int64_t k = 0; k < request.shards; ++k) local.pad_low = std::max(local.pad_low, request.Holes(k));
  for (int64_t k = 0; k < request.shards; ++k) local.skipped.push_back(local.pad_low - request.Holes(k));
  const int64_t most = *std::max_element(local.skipped.begin(), local.skipped.end());
  const int64_t spread = (request.Length() - 1) * request.dilation + 1;
  local.pad_high = request.Positions() + most - local.pad_low - spread;
  local.operand =
      EmitWindow(choice.windows[i], operand, choice.dims[i].operand_dim, choice.plan.operands[0], fill, context);
  return local;
}

}  // namespace gangway::partition
