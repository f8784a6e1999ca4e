#include "gangway/partition/op_plan.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "gangway/hlo/same_operation.h"
#include "gangway/mesh/geometry.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using rules::FactorKind;
using rules::OpRule;

// Charges against moved bytes: one flop of a dot or convolution, one byte read or written. What whole plans are weighed
// by is another matter (compile/plan_weights.h): here the moves of one operation stand against its own work.
constexpr double kBytesPerFlop = 0.2;
constexpr double kBytesPerSavedFlop = 0.0002;
constexpr double kBytesPerTouchedByte = 0.0005;
// Prefers major dimensions where all else is equal: reductions rarely run over those.
constexpr double kBytesPerPlace = 0.01;
// Of equal costs, to move a result is better than its one operand: whoever needs it may take it as it is.
constexpr double kSoonerByte = 1e-6;
// Of equal costs, partial sums of a value nobody else needs travel on: they may meet others to be added to.
constexpr double kTravelsOn = 1;
// Assignments tried one after the other; beyond, factors are improved one at a time.
constexpr int kMaxAssignments = 600;
constexpr size_t kMaxCandidates = 10;  // per factor
constexpr size_t kMaxReaders = 16;     // of a value that are looked at, for those who would share its reshard
constexpr double kImpossible = 1e40;
// Sums of costs in another order differ by less.
constexpr double kRounding = 1e-9;

bool IsMatrixOp(Opcode opcode) { return opcode == Opcode::kDot || opcode == Opcode::kConvolution; }

// How often an operation goes over what it touches.
double PassesOver(const Instruction& instruction) {
  const auto levels = [](int64_t extent) { return std::log2(static_cast<double>(std::max<int64_t>(2, extent))); };
  switch (instruction.opcode()) {
    case Opcode::kSort:
      return 2 * levels(instruction.operand(0)->shape().dim(instruction.attr<hlo::SortAttr>().dimension));
    case Opcode::kFft: {
      double passes = 0;
      for (int64_t length : instruction.attr<hlo::FftAttr>().lengths) passes += levels(length);
      return passes;
    }
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve:
      return static_cast<double>(instruction.operand(0)->shape().dims().back()) / 8;
    default:
      return 1;
  }
}

// The same operation on operands of the same kind that lie alike: it will want what `instruction` wants.
bool IsAlike(const Instruction& other, const Instruction& instruction, const Context& context) {
  if (&other == &instruction) return true;
  if (!hlo::SameOperation(other, instruction)) return false;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    const Instruction &theirs = *other.operand(i), &ours = *instruction.operand(i);
    if (!Shape::Compatible(theirs.shape(), ours.shape())) return false;
    if (context.Has(theirs) && context.Has(ours) && context.Value(theirs).sharding != context.Value(ours).sharding)
      return false;
  }
  return true;
}

// How many such lookups, `instruction` included, are in one table or by one list of indices: what one of them brings
// about does for all. (Other operations that read one value part where their results go: each pays for itself.)
double LookupsAlike(const Instruction& instruction, int64_t operand, const Context& context) {
  const auto& users = instruction.operand(operand)->users();
  const size_t looked_at = std::min(users.size(), kMaxReaders);
  const auto reads_alike = [&](const Instruction* user) {
    return user->operand_count() > operand && user->operand(operand) == instruction.operand(operand) &&
           IsAlike(*user, instruction, context);
  };
  return std::max<double>(1, static_cast<double>(std::count_if(users.begin(), users.begin() + looked_at, reads_alike)));
}

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
    readers_.assign(values_.size(), 1);
    for (size_t i = 0; i < leaves_.size(); ++i) wanted_.push_back(context.Wanted(instruction, static_cast<int64_t>(i)));
    if (instruction.has_sharding() && !wanted_.empty() && !wanted_[0].manual.empty()) manual_ = wanted_[0].manual;
    for (Sharding& wanted : wanted_) wanted.manual = manual_;
  }

  absl::StatusOr<OpPlan> Run() {
    CollectCandidates();
    if (TryAgreement()) return best_;
    if (!context_.module().options.plain) AddAlternatives();
    for (AxisList& kept : PartialChoices()) {
      kept_ = std::move(kept);
      std::vector<AxisList> axes(rule_.factors.size());
      tried_ = 0;
      Enumerate(0, &axes);
      if (tried_ > kMaxAssignments) Descend();
    }
    if (!found_) return absl::InternalError(absl::StrCat("no way to split ", instruction_.ToString()));
    return best_;
  }

 private:
  bool MustBeLocal(size_t factor) const {
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
    if (list.size() < kMaxCandidates && std::find(list.begin(), list.end(), axes) == list.end()) list.push_back(axes);
  }

  // Behind every split known for the factor so far, where shards stay even.
  void AddBehind(size_t factor, const AxisRef& axis) {
    const std::vector<AxisList> known = candidates_[factor];
    for (AxisList axes : known) {
      if (Overlaps(axes, axis)) continue;
      axes.push_back(axis);
      if (rule_.factors[factor].size % ProductOf(axes) == 0) AddCandidate(factor, axes);
    }
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
    OfferDisplacedAxes();
  }

  // Axes of a dimension that must be whole can split another one meanwhile: two all-to-alls at most, instead of a
  // gather and the same work on every device.
  void OfferDisplacedAxes() {
    AxisList displaced;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] != nullptr) AddDisplaced(rule_.operands[i], values_[i]->sharding, &displaced);
    }
    for (size_t i = 0; i < wanted_.size(); ++i) AddDisplaced(rule_.results[i], wanted_[i], &displaced);
    for (const AxisRef& axis : displaced) {
      for (size_t f = 0; f < rule_.factors.size(); ++f) AddBehind(f, axis);
    }
  }

  // Axes of a value that split no factor which may be split.
  void AddDisplaced(const rules::ValueFactors& dims, const Sharding& sharding, AxisList* displaced) const {
    if (sharding.rank() != static_cast<int64_t>(dims.size()) || !SameMesh(sharding.mesh, context_.mesh())) return;
    const std::vector<AxisList> axes = ToFactors(rule_, dims, sharding);
    for (const AxisRef& axis : sharding.DimAxes()) {
      bool placed = Contains(*displaced, axis);
      for (size_t f = 0; f < axes.size(); ++f) placed |= Contains(axes[f], axis) && !MustBeLocal(f);
      if (!placed) displaced->push_back(axis);
    }
  }

  // What is not there yet but may be cheaper to bring about: what other readers of an operand will want as well; other
  // versions of the operands; results as their readers asked for them; a result in parts where an operand holds partial
  // sums; any split at all of a product, whose operands may be small beside its result.
  void AddAlternatives() {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (instruction_.opcode() == Opcode::kGather)
        readers_[i] = LookupsAlike(instruction_, static_cast<int64_t>(i), context_);
      if (values_[i] == nullptr) continue;
      for (const Sharding& version : context_.VersionShardings(*values_[i])) AddCandidates(rule_.operands[i], version);
      if (context_.module().options.whole_sums) continue;
      for (const AxisRef& axis : values_[i]->sharding.unreduced) AddToResults(axis);
    }
    for (size_t i = 0; i < leaves_.size(); ++i) AddDemanded(static_cast<int64_t>(i));
    if (!IsMatrixOp(instruction_.opcode())) return;
    for (int axis = 0; axis < static_cast<int>(context_.mesh()->rank()); ++axis) {
      const AxisRef full = FullAxis(*context_.mesh(), axis);
      if (full.size == 1 || Overlaps(manual_, full)) continue;
      for (size_t f = 0; f < rule_.factors.size(); ++f) AddBehind(f, full);
    }
  }

  // As those who read the result asked for it in an earlier run.
  void AddDemanded(int64_t leaf) {
    const Demands* before = context_.module().options.before;
    if (before == nullptr) return;
    for (const Sharding& demand : before->Of({&instruction_, leaf})) AddCandidates(rule_.results[leaf], demand);
  }

  void AddToResults(const AxisRef& axis) {
    for (const rules::ValueFactors& dims : rule_.results) {
      for (const rules::DimFactors& dim : dims) {
        if (!dim.empty()) AddBehind(static_cast<size_t>(dim[0]), axis);
      }
    }
  }

  // Some axis is left over that could share out the work of a product.
  bool LeavesAxesIdle(const std::vector<AxisList>& axes) const {
    if (!IsMatrixOp(instruction_.opcode()) || context_.module().options.plain) return false;
    AxisList used = manual_;
    for (const AxisList& list : axes) used.insert(used.end(), list.begin(), list.end());
    return !UnusedAxes(*context_.mesh(), used).empty();
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
    natural_flops_ = Flops(merged);
    if (LeavesAxesIdle(merged)) return false;
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
    if (tried_ > kMaxAssignments) return;
    if (factor == rule_.factors.size()) {
      ++tried_;
      Consider(*axes, found_ ? best_.cost : kImpossible);
      return;
    }
    for (const AxisList& candidate : candidates_[factor]) {
      (*axes)[factor] = candidate;
      if (Clashes(absl::MakeConstSpan(axes->data(), factor + 1))) continue;
      Enumerate(factor + 1, axes);
    }
    (*axes)[factor].clear();
  }

  // An axis is in two lists, or operands stay partial over it.
  bool Clashes(absl::Span<const AxisList> axes) const {
    AxisList seen = kept_;
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
            for (AxisList& list : next) RemoveOverlapping(&list, candidate);  // another factor gets them
            next[f] = candidate;
            if (Clashes(next)) continue;
            const double next_cost = Consider(next, cost);
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

  double Flops(const std::vector<AxisList>& axes) const {
    double flops = 2;
    for (size_t f = 0; f < axes.size(); ++f) {
      flops *= static_cast<double>(ShardExtent(rule_.factors[f].size, ProductOf(axes[f])));
    }
    return flops;
  }

  // Work of one device, in moved bytes. Repeating work that is split already is dear; sharing out what all devices
  // would repeat is worth little, for repeating it needs no message.
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
    return touched * kBytesPerTouchedByte * PassesOver(instruction_) + FlopCost(axes);
  }

  // Where zeros are put around sums, they may meet others that are whole: then all is summed, zeros too.
  double TravelsOn() const { return instruction_.opcode() == Opcode::kPad ? 0 : kTravelsOn; }

  // What a product costs at least, whatever is moved.
  double FlopCost(const std::vector<AxisList>& axes) const {
    if (!IsMatrixOp(instruction_.opcode())) return 0;
    const double flops = Flops(axes), saved = std::max(0.0, natural_flops_ - flops);
    return (flops + saved) * kBytesPerFlop - saved * kBytesPerSavedFlop;
  }

  // Costs an assignment and keeps it if it is the best; kImpossible when it cannot be, or as soon as it is clear that
  // it costs more than `bound`, which is no less than the best so far.
  double Consider(const std::vector<AxisList>& axes, double bound = kImpossible) {
    const double least_work = FlopCost(axes);
    const double enough = (bound + (kept_.empty() ? 0 : TravelsOn())) * (1 + kRounding) - least_work;
    if (enough < 0) return kImpossible;
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
        const double sooner = values_.size() == 1 ? kSoonerByte : 0;
        plan.cost += (1 + sooner) * context_.ReshardCost(*values_[i], sharding) / readers_[i];
        if (plan.cost > enough) return kImpossible;
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
        if (plan.cost > enough) return kImpossible;
      }
      plan.results.push_back(std::move(sharding));
    }
    moves_ = plan.cost;
    plan.work = WorkCost(axes, plan);
    plan.cost += plan.work;
    for (size_t f = 0; f < axes.size(); ++f) {
      if (!axes[f].empty()) plan.cost += kBytesPerPlace * static_cast<double>(f);
    }
    if (!kept_.empty()) plan.cost -= TravelsOn();
    const double cost = plan.cost;
    if (!found_ || cost < best_.cost) {
      found_ = true;
      best_ = std::move(plan);
    }
    return cost;
  }

  const Instruction& instruction_;
  const OpRule& rule_;
  const OpPlanOptions& options_;
  Context& context_;
  const std::vector<Shape> leaves_;
  std::vector<const LocalValue*> values_;  // null for tuples
  std::vector<double> readers_;            // who share the reshard of each
  Shardings wanted_;
  AxisList manual_;
  std::vector<std::vector<AxisList>> candidates_;
  std::vector<std::vector<AxisList>> starts_;
  AxisList kept_;
  int tried_ = 0;
  double natural_flops_ = 0;  // where operands and results lie alike; 0 when they do not
  double moves_ = 0;          // reshard cost of the assignment considered last
  bool found_ = false;
  OpPlan best_;
};

}  // namespace

absl::StatusOr<OpPlan> PlanOp(const Instruction& instruction, const OpRule& rule, const OpPlanOptions& options,
                              Context& context) {
  return OpPlanner(instruction, rule, options, context).Run();
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
