#include "gangway/partition/reshard_plan.h"

#include <iterator>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/partition/other_mesh.h"
#include "gangway/partition/reshard_search.h"

namespace gangway::partition {
namespace {

bool IsCollectiveStep(StepKind kind) {
  return kind != StepKind::kSlice && kind != StepKind::kMakePartial && kind != StepKind::kSpread;
}

uint32_t BitOf(int8_t holder) { return holder == kLocal ? 0 : uint32_t{1} << holder; }

// Axes that split a dimension and are to hold partial results: what a device has is its part of the sum, so nothing
// moves. The rest of the way starts from there.
DigitView SpreadParts(const DigitView& view, std::vector<ReshardStep>* steps) {
  const uint32_t wanted = view.unreduced_to & ~view.unreduced_from;
  DigitView rest = view;
  ReshardStep step;
  step.kind = StepKind::kSpread;
  for (int8_t& holder : rest.from) {
    if (!(BitOf(holder) & wanted)) continue;
    rest.unreduced_from |= BitOf(holder);
    holder = kLocal;
  }
  if (rest.from == view.from) return rest;
  step.before = view.from;
  step.after = rest.from;
  step.unreduced_before = view.unreduced_from;
  step.unreduced_after = rest.unreduced_from;
  steps->push_back(std::move(step));
  return rest;
}

// Partial results the target wants and the start has not: hold the identity on all devices but the first.
void AddMakePartial(uint32_t unreduced_from, ReshardStage* stage) {
  const uint32_t wanted = stage->view.unreduced_to & ~unreduced_from;
  if (wanted == 0) return;
  ReshardStep step;
  step.kind = StepKind::kMakePartial;
  step.before = step.after = stage->view.to;
  step.unreduced_after = stage->view.unreduced_to;
  step.unreduced_before = stage->view.unreduced_to & ~wanted;
  stage->steps.push_back(std::move(step));
}

ReshardStage PlanStage(const Sharding& from, const Sharding& to, DigitView view, int element_bytes,
                       StepSearch& search) {
  ReshardStage stage{from, to, std::move(view), {}};
  const DigitView rest = SpreadParts(stage.view, &stage.steps);
  absl::c_move(search.Steps(rest, element_bytes), std::back_inserter(stage.steps));
  AddMakePartial(rest.unreduced_from, &stage);
  return stage;
}

// The halfway sharding with the given dimensions local.
Sharding WithLocalDims(Sharding sharding, const std::vector<int64_t>& dims) {
  for (int64_t d : dims) sharding.dims[d].axes.clear();
  return sharding;
}

absl::Status AddStages(const Sharding& from, const Sharding& to, const Shape& shape, StepSearch& search,
                       ReshardPlan* plan) {
  if (from == to) return absl::OkStatus();
  const int element_bytes = ByteWidth(shape.dtype());
  DigitResult digits = CommonDigits(from, to, shape);
  if (digits.incompatible.empty()) {
    plan->stages.push_back(PlanStage(from, to, std::move(digits.view), element_bytes, search));
    return absl::OkStatus();
  }
  const Sharding middle = WithLocalDims(from, digits.incompatible);
  if (middle == from) return absl::InternalError(absl::StrCat("no path from ", from.ToString(), " to ", to.ToString()));
  GW_RETURN_IF_ERROR(AddStages(from, middle, shape, search, plan));
  return AddStages(middle, to, shape, search, plan);
}

void AddTotals(ReshardPlan* plan) {
  plan->bytes = 0;
  plan->messages = 0;
  for (const ReshardStage& stage : plan->stages) {
    for (const ReshardStep& step : stage.steps) {
      plan->bytes += step.bytes;
      plan->messages += IsCollectiveStep(step.kind);
    }
  }
}

// The stage that carries tiles from one mesh to another; no step when every device has its tile already.
ReshardStage MoveStage(const Sharding& from, const Sharding& to, const Shape& shape) {
  ReshardStage stage{from, to, {}, {}};
  if (InPlace(TilePairs(from, to))) return stage;
  ReshardStep move;
  move.kind = StepKind::kMove;
  move.bytes = static_cast<double>(ShardShape(shape, from).ByteSize());
  stage.steps.push_back(std::move(move));
  return stage;
}

// Meshes without common axes: each way over a split that both can express, of which the cheapest is kept.
absl::Status AddStagesBetweenMeshes(const Sharding& from, const Sharding& to, const Shape& shape, StepSearch& search,
                                    ReshardPlan* plan) {
  bool found = false;
  for (const DimVector& counts : MeetingCounts(from, to)) {
    for (const Sharding& leave : SplitsInto(counts, from.mesh, from)) {
      for (const Sharding& arrive : SplitsInto(counts, to.mesh, to)) {
        ReshardPlan candidate;
        candidate.shape = shape;
        GW_RETURN_IF_ERROR(AddStages(from, leave, shape, search, &candidate));
        candidate.stages.push_back(MoveStage(leave, arrive, shape));
        GW_RETURN_IF_ERROR(AddStages(arrive, to, shape, search, &candidate));
        AddTotals(&candidate);
        if (found && candidate.Cost() >= plan->Cost()) continue;
        *plan = std::move(candidate);
        found = true;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReductions(const Sharding& from, const Sharding& to) {
  if (from.manual != to.manual) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot reshard between different manual axes: ", from.ToString(), " and ", to.ToString()));
  }
  if (!from.unreduced.empty() && !to.unreduced.empty() && from.reduction != to.reduction) {
    return absl::InvalidArgumentError(absl::StrCat("cannot reshard partial results of ", ReductionName(from.reduction),
                                                   " to ", ReductionName(to.reduction)));
  }
  return absl::OkStatus();
}

std::string DigitsToString(const ReshardStage& stage, const ReshardStep& step) {
  std::string text;
  if (step.kind == StepKind::kMove) return absl::StrCat(" to ", stage.to.mesh->ToString());
  AxisList axes;
  for (size_t i = 0; i < step.before.size(); ++i) {
    if (step.before[i] == step.after[i]) continue;
    const auto name = [&](int8_t holder) {
      return holder == kLocal ? std::string("-") : AxisToString(*stage.view.mesh, stage.view.atoms[holder]);
    };
    absl::StrAppend(&text, " dim", stage.view.digits[i].dim, ":", name(step.before[i]), "->", name(step.after[i]));
  }
  const uint32_t resolved = step.unreduced_before ^ step.unreduced_after;
  for (size_t a = 0; a < stage.view.atoms.size(); ++a) {
    if (resolved >> a & 1) axes.push_back(stage.view.atoms[a]);
  }
  if (!axes.empty()) absl::StrAppend(&text, " over ", AxesToString(*stage.view.mesh, axes));
  return text;
}

// Of a sharding what Closed() keeps.
struct Placement {
  const Sharding& of;

  Reduction reduction() const { return of.unreduced.empty() ? Reduction::kSum : of.reduction; }

  friend bool operator==(const Placement& a, const Placement& b) {
    auto alike = [](const DimSharding& x, const DimSharding& y) { return x.axes == y.axes; };
    return SameMesh(a.of.mesh, b.of.mesh) && a.reduction() == b.reduction() && a.of.unreduced == b.of.unreduced &&
           a.of.manual == b.of.manual && absl::c_equal(a.of.dims, b.of.dims, alike);
  }
  template <typename H>
  friend H AbslHashValue(H h, const Placement& p) {
    for (const DimSharding& dim : p.of.dims) h = H::combine(std::move(h), dim.axes);
    return H::combine(std::move(h), p.of.unreduced, static_cast<int>(p.reduction()), p.of.manual);
  }
};

}  // namespace

absl::string_view StepName(StepKind kind) {
  switch (kind) {
    case StepKind::kSlice:
      return "slice";
    case StepKind::kAllGather:
      return "all-gather";
    case StepKind::kAllToAll:
      return "all-to-all";
    case StepKind::kPermute:
      return "permute";
    case StepKind::kExchange:
      return "exchange";
    case StepKind::kReduceScatter:
      return "reduce-scatter";
    case StepKind::kAllReduce:
      return "all-reduce";
    case StepKind::kMakePartial:
      return "make-partial";
    case StepKind::kSpread:
      return "spread";
    case StepKind::kMove:
      return "move";
  }
  return "?";
}

bool ReshardPlan::HasSteps() const {
  return absl::c_any_of(stages, [](const ReshardStage& stage) { return !stage.steps.empty(); });
}

double ReshardPlan::Cost() const { return bytes + kBytesPerCollective * static_cast<double>(messages); }

std::string ReshardPlan::ToString() const {
  std::string text;
  for (const ReshardStage& stage : stages) {
    for (const ReshardStep& step : stage.steps) {
      absl::StrAppend(&text, text.empty() ? "" : "; ", StepName(step.kind), DigitsToString(stage, step));
      if (step.bytes > 0) absl::StrAppend(&text, " ", step.bytes, " bytes");
    }
  }
  return text.empty() ? "nothing" : text;
}

absl::StatusOr<ReshardPlan> PlanReshard(const Sharding& from, const Sharding& to, const Shape& shape) {
  StepSearch search;
  return PlanReshard(from, to, shape, search);
}

absl::StatusOr<ReshardPlan> PlanReshard(const Sharding& from_in, const Sharding& to_in, const Shape& shape,
                                        StepSearch& search) {
  ReshardPlan plan;
  plan.shape = shape;
  const Sharding from = from_in.Closed();
  const Sharding to = to_in.Closed();
  if (from == to) return plan;
  for (const Sharding* sharding : {&from, &to}) GW_RETURN_IF_ERROR(ValidateSharding(*sharding, shape));
  GW_RETURN_IF_ERROR(CheckReductions(from, to));
  if (SameMesh(from.mesh, to.mesh)) {
    GW_RETURN_IF_ERROR(AddStages(from, to, shape, search, &plan));
  } else if (auto over_from = OverMesh(to, from.mesh)) {
    GW_RETURN_IF_ERROR(AddStages(from, *over_from, shape, search, &plan));
  } else if (auto over_to = OverMesh(from, to.mesh)) {
    GW_RETURN_IF_ERROR(AddStages(*over_to, to, shape, search, &plan));
  } else {
    GW_RETURN_IF_ERROR(AddStagesBetweenMeshes(from, to, shape, search, &plan));
  }
  AddTotals(&plan);
  return plan;
}

absl::StatusOr<const ReshardPlan*> ReshardPlanner::Plan(const Sharding& from, const Sharding& to, const Shape& shape) {
  if (auto it = plans_.find(Question(from, to, shape)); it != plans_.end()) return it->second.get();
  Key key{from.Closed(), to.Closed(), WithoutLayout(shape)};
  auto it = plans_.find(key);
  if (it == plans_.end()) {
    GW_ASSIGN_OR_RETURN(ReshardPlan plan, PlanReshard(key.from, key.to, key.shape, search_));
    it = plans_.emplace(std::move(key), std::make_unique<ReshardPlan>(std::move(plan))).first;
  }
  return it->second.get();
}

size_t ReshardPlanner::Hash::operator()(const Question& question) const {
  return absl::HashOf(Placement{question.from}, Placement{question.to}, question.shape);
}

bool ReshardPlanner::Equal::operator()(const Question& a, const Question& b) const {
  return Placement{a.from} == Placement{b.from} && Placement{a.to} == Placement{b.to} && a.shape == b.shape;
}

double ReshardPlanner::Cost(const Sharding& from, const Sharding& to, const Shape& shape) {
  auto plan = Plan(from, to, shape);
  return plan.ok() ? (*plan)->Cost() : 1e30;
}

}  // namespace gangway::partition
