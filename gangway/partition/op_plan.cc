#include "gangway/partition/op_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gangway/mesh/geometry.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using rules::FactorKind;
using rules::OpRule;

// Charges against moved bytes: one flop of a dot or convolution, one byte read or written.
constexpr double kBytesPerFlop = 0.05;
constexpr double kBytesPerTouchedByte = 0.02;
// Tried exhaustively up to here, factor by factor beyond.
constexpr double kMaxAssignments = 600;

bool IsMatrixOp(Opcode opcode) { return opcode == Opcode::kDot || opcode == Opcode::kConvolution; }

class OpPlanner {
 public:
  OpPlanner(const Instruction& instruction, const OpRule& rule, const OpPlanOptions& options, Context& context)
      : instruction_(instruction),
        rule_(rule),
        options_(options),
        context_(context),
        leaves_(Leaves(instruction.shape())) {
    for (int64_t i = 0; i < instruction.operand_count(); ++i) {
      const LocalValues& values = context.Values(*instruction.operand(i));
      values_.push_back(values.size() == 1 ? &values[0] : nullptr);
      if (values_.back() != nullptr && !values_.back()->sharding.manual.empty())
        manual_ = values_.back()->sharding.manual;
    }
    for (size_t i = 0; i < leaves_.size(); ++i) wanted_.push_back(context.Wanted(instruction, static_cast<int64_t>(i)));
    if (instruction.has_sharding() && !wanted_.empty() && !wanted_[0].manual.empty()) manual_ = wanted_[0].manual;
    for (Sharding& wanted : wanted_) wanted.manual = manual_;
  }

  absl::StatusOr<OpPlan> Run() {
    CollectCandidates();
    if (TryAgreement()) return best_;
    for (AxisList& kept : PartialChoices()) {
      kept_ = std::move(kept);
      double combinations = 1;
      for (const auto& list : candidates_) combinations *= static_cast<double>(list.size());
      if (combinations <= kMaxAssignments) {
        std::vector<AxisList> axes(rule_.factors.size());
        Enumerate(0, &axes);
      } else {
        Descend();
      }
    }
    if (!found_) return absl::InternalError(absl::StrCat("no way to split ", instruction_.ToString()));
    return best_;
  }

 private:
  bool MustBeLocal(size_t factor) const {
    if (!options_.local.empty()) return options_.local[factor];
    const FactorKind kind = rule_.factors[factor].kind;
    return kind == FactorKind::kPermutation || kind == FactorKind::kNeedReplication;
  }

  void AddCandidate(size_t factor, const AxisList& axes) {
    if (axes.empty() || MustBeLocal(factor)) return;
    for (const AxisRef& ref : axes) {
      if (Overlaps(options_.without, ref)) return;
    }
    if (rule_.factors[factor].kind == FactorKind::kReduction && !options_.may_reduce) return;
    auto& list = candidates_[factor];
    if (std::find(list.begin(), list.end(), axes) == list.end()) list.push_back(axes);
  }

  void AddCandidates(const rules::ValueFactors& dims, const Sharding& sharding) {
    if (sharding.rank() != static_cast<int64_t>(dims.size()) || !SameMesh(sharding.mesh, context_.mesh())) return;
    std::vector<AxisList> axes = ToFactors(rule_, dims, sharding);
    for (size_t f = 0; f < axes.size(); ++f) {
      AddCandidate(f, axes[f]);
      for (size_t n = 1; n < axes[f].size(); ++n) {
        AddCandidate(f, AxisList(axes[f].begin(), axes[f].begin() + static_cast<int64_t>(n)));
        AddCandidate(f, AxisList(axes[f].begin() + static_cast<int64_t>(n), axes[f].end()));
      }
    }
    starts_.push_back(std::move(axes));
  }

  void CollectCandidates() {
    candidates_.assign(rule_.factors.size(), {AxisList{}});
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] != nullptr) AddCandidates(rule_.operands[i], values_[i]->sharding);
    }
    for (size_t i = 0; i < wanted_.size(); ++i) AddCandidates(rule_.results[i], wanted_[i]);
  }

  // The usual case: operands and results already lie alike, nothing moves. Saves the search.
  bool TryAgreement() {
    if (!PartialFree()) return false;
    std::vector<AxisList> merged(rule_.factors.size());
    for (const auto& start : starts_) {
      for (size_t f = 0; f < start.size(); ++f) {
        if (start[f].empty()) continue;
        if (MustBeLocal(f) || (!merged[f].empty() && merged[f] != start[f])) return false;
        if (rule_.factors[f].kind == FactorKind::kReduction) return false;
        for (const AxisRef& ref : start[f]) {
          if (Overlaps(options_.without, ref)) return false;
        }
        merged[f] = start[f];
      }
    }
    if (Clashes(merged)) return false;
    moves_ = 1;
    Consider(merged);
    if (moves_ == 0) return true;
    found_ = false;
    return false;
  }

  bool PartialFree() const {
    return std::all_of(values_.begin(), values_.end(),
                       [](const LocalValue* value) { return value == nullptr || value->sharding.unreduced.empty(); });
  }

  // Axes over which operands may stay partial; the empty list first.
  std::vector<AxisList> PartialChoices() const {
    std::vector<AxisList> choices = {{}};
    AxisList common;
    bool first = true;
    int partial = 0;
    for (int i : options_.partial_ok) {
      const LocalValue* value = values_[i];
      if (value == nullptr) return choices;
      if (value->sharding.unreduced.empty()) {
        if (options_.partial_together) return choices;
        continue;
      }
      if (value->sharding.reduction != Reduction::kSum || !SameMesh(value->sharding.mesh, context_.mesh()))
        return choices;
      ++partial;
      AxisList shared;
      for (const AxisRef& ref : value->sharding.unreduced) {
        if (first || std::find(common.begin(), common.end(), ref) != common.end()) shared.push_back(ref);
      }
      common = std::move(shared);
      first = false;
    }
    if (common.empty() || (!options_.partial_together && partial != 1)) return choices;
    choices.push_back(common);
    return choices;
  }

  bool StaysPartial(size_t operand) const {
    if (kept_.empty() || values_[operand] == nullptr) return false;
    if (std::find(options_.partial_ok.begin(), options_.partial_ok.end(), static_cast<int>(operand)) ==
        options_.partial_ok.end()) {
      return false;
    }
    return !values_[operand]->sharding.unreduced.empty();
  }

  void Enumerate(size_t factor, std::vector<AxisList>* axes) {
    if (factor == rule_.factors.size()) {
      Consider(*axes);
      return;
    }
    for (const AxisList& candidate : candidates_[factor]) {
      bool clash = false;
      for (const AxisRef& ref : candidate) {
        clash |= Overlaps(kept_, ref);
        for (size_t f = 0; f < factor; ++f) clash |= Overlaps((*axes)[f], ref);
      }
      if (clash) continue;
      (*axes)[factor] = candidate;
      Enumerate(factor + 1, axes);
    }
    (*axes)[factor].clear();
  }

  static bool Clashes(const std::vector<AxisList>& axes) {
    AxisList seen;
    for (const AxisList& list : axes) {
      for (const AxisRef& ref : list) {
        if (Overlaps(seen, ref)) return true;
        seen.push_back(ref);
      }
    }
    return false;
  }

  // Improves one factor at a time from each value's own sharding.
  void Descend() {
    std::vector<std::vector<AxisList>> starts = {std::vector<AxisList>(rule_.factors.size())};
    for (const auto& start : starts_) {
      starts.push_back(start);
      for (size_t f = 0; f < start.size(); ++f) {
        for (const AxisRef& ref : start[f]) {
          if (MustBeLocal(f) || Overlaps(options_.without, ref)) starts.back()[f].clear();
        }
      }
    }
    for (std::vector<AxisList>& axes : starts) {
      if (Clashes(axes)) continue;
      double cost = Consider(axes);
      for (bool better = true; better;) {
        better = false;
        for (size_t f = 0; f < axes.size(); ++f) {
          for (const AxisList& candidate : candidates_[f]) {
            std::vector<AxisList> next = axes;
            next[f] = candidate;
            if (Clashes(next)) continue;
            const double next_cost = Consider(next);
            if (next_cost < cost) {
              axes = std::move(next);
              cost = next_cost;
              better = true;
            }
          }
        }
      }
    }
  }

  // Work of one device, in moved bytes.
  double WorkCost(const std::vector<AxisList>& axes, const OpPlan& plan) const {
    double touched = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] != nullptr && values_[i]->global.IsArray()) {
        touched += static_cast<double>(ShardShape(values_[i]->global, plan.operands[i]).ByteSize());
      }
    }
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i].IsArray()) touched += static_cast<double>(ShardShape(leaves_[i], plan.results[i]).ByteSize());
    }
    double cost = touched * kBytesPerTouchedByte;
    if (IsMatrixOp(instruction_.opcode())) {
      double flops = 2;
      for (size_t f = 0; f < axes.size(); ++f) {
        flops *= static_cast<double>(ShardExtent(rule_.factors[f].size, ProductOf(axes[f])));
      }
      cost += flops * kBytesPerFlop;
    }
    return cost;
  }

  // Costs an assignment and keeps it if it is the best; infinite when it cannot be.
  double Consider(const std::vector<AxisList>& axes) {
    constexpr double kImpossible = 1e40;
    OpPlan plan;
    plan.factors = axes;
    for (size_t f = 0; f < axes.size(); ++f) {
      if (rule_.factors[f].kind != FactorKind::kReduction || axes[f].empty()) continue;
      if (!plan.reduced.empty() && plan.reduction != rule_.factors[f].reduction) return kImpossible;
      plan.reduction = rule_.factors[f].reduction;
      plan.reduced.insert(plan.reduced.end(), axes[f].begin(), axes[f].end());
    }
    if (!kept_.empty() && !plan.reduced.empty() && plan.reduction != Reduction::kSum) return kImpossible;
    AxisList partial = plan.reduced;
    partial.insert(partial.end(), kept_.begin(), kept_.end());

    for (size_t i = 0; i < values_.size(); ++i) {
      Sharding sharding = context_.Replicated(values_[i] == nullptr ? 0 : values_[i]->global.rank());
      if (values_[i] != nullptr && values_[i]->global.IsArray()) {
        if (!FromFactors(rule_, rule_.operands[i], axes, context_.mesh(), &sharding)) return kImpossible;
        sharding.manual = manual_;
        if (StaysPartial(i)) sharding.unreduced = kept_;
        plan.cost += context_.ReshardCost(*values_[i], sharding);
      }
      plan.operands.push_back(std::move(sharding));
    }
    for (size_t i = 0; i < leaves_.size(); ++i) {
      Sharding sharding = context_.Replicated(leaves_[i].rank());
      if (leaves_[i].IsArray()) {
        if (!FromFactors(rule_, rule_.results[i], axes, context_.mesh(), &sharding)) return kImpossible;
        sharding.manual = manual_;
        sharding.unreduced = partial;
        sharding.reduction = plan.reduction;
        plan.cost += ResultCost(instruction_, static_cast<int64_t>(i), sharding, context_);
      }
      plan.results.push_back(std::move(sharding));
    }
    moves_ = plan.cost;
    plan.work = WorkCost(axes, plan);
    plan.cost += plan.work;
    // Of equal costs, partial sums of a value nobody else needs travel on: they may meet others to be added to.
    if (!kept_.empty()) plan.cost -= 1;
    if (!found_ || plan.cost < best_.cost) {
      found_ = true;
      best_ = plan;
    }
    return plan.cost;
  }

  const Instruction& instruction_;
  const OpRule& rule_;
  const OpPlanOptions& options_;
  Context& context_;
  const std::vector<Shape> leaves_;
  std::vector<const LocalValue*> values_;  // null for tuples
  Shardings wanted_;
  AxisList manual_;
  std::vector<std::vector<AxisList>> candidates_;
  std::vector<std::vector<AxisList>> starts_;
  AxisList kept_;
  double moves_ = 0;  // reshard cost of the assignment considered last
  bool found_ = false;
  OpPlan best_;
};

bool IsLinearUser(const Instruction& user) {
  switch (user.opcode()) {
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kNegate:
    case Opcode::kTranspose:
    case Opcode::kReshape:
    case Opcode::kCopy:
    case Opcode::kReduce:
    case Opcode::kSlice:
      return true;
    default:
      return false;
  }
}

// Partial sums that several users need whole are better resolved once.
bool WorthPassing(const Instruction& operand) {
  if (operand.users().size() <= 1) return true;
  return std::all_of(operand.users().begin(), operand.users().end(),
                     [](const Instruction* u) { return IsLinearUser(*u); });
}

}  // namespace

// The one user adds it to a value that holds partial sums over the same axes.
static bool JoinsPartialSums(const Instruction& instruction, const Sharding& sharding, const Context& context) {
  if (sharding.unreduced.empty() || sharding.reduction != Reduction::kSum || instruction.users().size() != 1)
    return false;
  const Instruction& user = *instruction.users()[0];
  if (user.opcode() != Opcode::kAdd) return false;
  const Instruction& other = *user.operand(user.operand(0) == &instruction ? 1 : 0);
  if (&other == &instruction || !context.Has(other)) return false;
  const Sharding& joined = context.Value(other).sharding;
  return joined.unreduced == sharding.unreduced && joined.reduction == sharding.reduction &&
         SameMesh(joined.mesh, sharding.mesh);
}

double ResultCost(const Instruction& instruction, int64_t leaf, const Sharding& sharding, Context& context) {
  const Shape shape = WithoutLayout(Leaves(instruction.shape())[leaf]);
  const Sharding wanted = Context::WithManual(context.Wanted(instruction, leaf), sharding.manual);
  Sharding from = sharding;
  if (leaf == 0 && JoinsPartialSums(instruction, sharding, context)) from.unreduced.clear();
  return context.module().planner.Cost(from, wanted, shape);
}

OpPlanOptions OptionsFor(const Instruction& instruction) {
  OpPlanOptions options;
  switch (instruction.opcode()) {
    case Opcode::kAdd:
    case Opcode::kSubtract:
      options.partial_together = true;
      options.partial_ok = {0, 1};
      break;
    case Opcode::kMultiply:
    case Opcode::kDot:
      options.partial_ok = {0, 1};
      break;
    case Opcode::kDivide:
      if (IsFloat(instruction.shape().dtype())) options.partial_ok = {0};
      break;
    case Opcode::kNegate:
    case Opcode::kCopy:
    case Opcode::kTranspose:
    case Opcode::kReshape:
    case Opcode::kSlice:
    case Opcode::kReverse:
      options.partial_ok = {0};
      break;
    case Opcode::kReduce:
      // Only sums, and the initial value then counts once (rule.accumulated).
      if (instruction.operand_count() == 2 && rules::ReductionOf(*instruction.called()[0]) == Reduction::kSum) {
        options.partial_ok = {0};
      }
      break;
    default:
      break;
  }
  for (auto it = options.partial_ok.begin(); it != options.partial_ok.end();) {
    it = WorthPassing(*instruction.operand(*it)) ? it + 1 : options.partial_ok.erase(it);
  }
  if (options.partial_together && options.partial_ok.size() < 2) options.partial_ok.clear();
  return options;
}

absl::StatusOr<OpPlan> PlanOp(const Instruction& instruction, const OpRule& rule, const OpPlanOptions& options,
                              Context& context) {
  return OpPlanner(instruction, rule, options, context).Run();
}

std::vector<AxisList> ToFactors(const OpRule& rule, const rules::ValueFactors& dims, const Sharding& sharding) {
  std::vector<AxisList> result(rule.factors.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const AxisList& axes = sharding.dims[d].axes;
    if (axes.empty() || dims[d].empty()) continue;
    if (dims[d].size() == 1) {
      result[dims[d][0]] = axes;
      continue;
    }
    size_t place = 0;
    int64_t room = rule.factors[dims[d][0]].size;
    for (AxisRef ref : axes) {
      while (ref.size > 1 && place < dims[d].size()) {
        if (room == 1) {
          if (++place == dims[d].size()) break;
          room = rule.factors[dims[d][place]].size;
          continue;
        }
        if (room % ref.size == 0) {
          result[dims[d][place]].push_back(ref);
          room /= ref.size;
          ref.size = 1;
        } else if (ref.size % room == 0) {
          result[dims[d][place]].push_back({ref.axis, ref.pre, room});
          ref.pre *= room;
          ref.size /= room;
          room = 1;
        } else {
          place = dims[d].size();
        }
      }
    }
  }
  return result;
}

bool FromFactors(const OpRule& rule, const rules::ValueFactors& dims, const std::vector<AxisList>& axes,
                 const MeshRef& mesh, Sharding* sharding) {
  *sharding = Sharding::Replicated(mesh, static_cast<int64_t>(dims.size())).Closed();
  for (size_t d = 0; d < dims.size(); ++d) {
    AxisList& list = sharding->dims[d].axes;
    bool full = true;
    for (int factor : dims[d]) {
      const int64_t count = ProductOf(axes[factor]);
      if (count > 1 && !full) return false;
      if (dims[d].size() > 1 && rule.factors[factor].size % count != 0) return false;
      list.insert(list.end(), axes[factor].begin(), axes[factor].end());
      full = full && count == rule.factors[factor].size;
    }
    MergeSubAxes(&list);
  }
  return true;
}

std::string OpPlan::ToString(const Mesh& mesh) const {
  std::string text;
  for (size_t i = 0; i < operands.size(); ++i) absl::StrAppend(&text, i ? ", " : "", operands[i].ToString());
  absl::StrAppend(&text, " -> ");
  for (size_t i = 0; i < results.size(); ++i) absl::StrAppend(&text, i ? ", " : "", results[i].ToString());
  if (!reduced.empty()) absl::StrAppend(&text, " reducing ", AxesToString(mesh, reduced));
  absl::StrAppend(&text, " cost ", cost);
  return text;
}

}  // namespace gangway::partition
