#include "gangway/partition/context.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/mesh/hlo_sharding.h"
#include "gangway/partition/emit_reshard.h"
#include "gangway/partition/rematerialize.h"

namespace gangway::partition {

using hlo::Instruction;
using hlo::Opcode;

namespace {

// What remains of the cost of a reshard that others make too: they may still change their minds.
constexpr double kCostOfShared = 0.1;
constexpr double kNever = 1e30;
// Of what is done once, before a loop, each step is charged so much.
constexpr double kShareOfStep = 0.125;
// One operation on one element, done again by every device instead of moving its result.
constexpr double kBytesPerRemadeElement = 0.1;

// The instruction works on a value however it lies, so that taking it as it is asks for nothing.
bool TakesAnySharding(const Instruction* instruction) {
  if (instruction == nullptr) return false;
  switch (instruction->opcode()) {
    case Opcode::kTranspose:
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kReduce:
    case Opcode::kClamp:
      return true;
    default:
      return hlo::IsElementwise(instruction->opcode());
  }
}

// Without a list of all leaves: results and loop states have thousands.
int64_t LeafRank(const Shape& shape, int64_t leaf) {
  const Shape* at = &shape;
  while (at->IsTuple()) {
    for (const Shape& element : at->tuple()) {
      const int64_t count = LeafCount(element);
      if (leaf < count) {
        at = &element;
        break;
      }
      leaf -= count;
    }
  }
  return at->rank();
}

}  // namespace

Context::Context(ModuleState* module, hlo::Computation* target)
    : module_(module),
      target_(target),
      builder_(target),
      coordinates_(&builder_),
      collectives_(&coordinates_, &module->next_channel) {}

void Context::Begin(const Instruction& instruction, bool demands) {
  current_ = &instruction;
  demanding_ = demands ? current_ : nullptr;
  if (module_->options.record_reasons) {
    current_reason_ = module_->reasons.size();
    Reason& reason = module_->reasons.emplace_back();
    reason.wanted_by = instruction.name();
    reason.source = instruction.metadata();
  }
  builder_.set_metadata(CurrentMetadata());
}

hlo::OpMetadata Context::CurrentMetadata() const {
  if (current_ == nullptr) return {};
  return module_->options.record_reasons ? WithReason(current_->metadata(), current_reason_) : current_->metadata();
}

const LocalValues& Context::Values(const Instruction& instruction) const { return values_.at(&instruction); }

void Context::Set(const Instruction& instruction, LocalValues values) {
  for (size_t leaf = 0; leaf < values.size(); ++leaf) {
    if (values[leaf].key.first == nullptr) values[leaf].key = {&instruction, static_cast<int64_t>(leaf)};
  }
  if (values.size() == 1 && values[0].origin == &instruction) {
    steps_to_remake_[&instruction] = partition::StepsToRemake(instruction, *this);
    values[0].unchanged = IsUnchanged(instruction);
  }
  values_[&instruction] = std::move(values);
}

void Context::Set(const Instruction& instruction, Instruction* local, Sharding sharding) {
  Set(instruction, {LocalValue{local, std::move(sharding), WithoutLayout(instruction.shape()), &instruction}});
}

bool Context::IsUnchanged(const Instruction& instruction) const {
  if (!TakesAnySharding(&instruction) || instruction.opcode() == Opcode::kReduce) return false;
  bool unchanged = false;
  for (const Instruction* operand : instruction.operands()) {
    const LocalValues& values = Values(*operand);
    if (values.size() != 1) return false;
    if (!values[0].unchanged && !IsCheapToRemake(values[0])) return false;
    unchanged |= values[0].unchanged;
  }
  return unchanged;
}

int64_t Context::GrowthOfLoop(const LocalValue& value, const Sharding& to) const {
  const int64_t grows = ShardShape(value.global, to).ByteSize() - ShardShape(value.global, value.sharding).ByteSize();
  return std::max<int64_t>(0, grows);
}

void Context::MarkUnchanged(const Instruction& parameter, const std::vector<bool>& leaves) {
  LocalValues& values = values_.at(&parameter);
  for (size_t leaf = 0; leaf < values.size(); ++leaf) values[leaf].unchanged = leaves[leaf];
}

Sharding Context::Wanted(const Instruction& instruction, int64_t leaf) const {
  const auto& shardings = instruction.shardings();
  const int64_t rank = LeafRank(instruction.shape(), leaf);
  if (!shardings || leaf >= static_cast<int64_t>(shardings->size())) return Replicated(rank);
  Sharding wanted = (*shardings)[leaf].Closed();
  if (wanted.mesh == nullptr || wanted.IsMaximal() || wanted.rank() != rank) return Replicated(rank);
  if (SameMesh(wanted.mesh, mesh())) {
    wanted.mesh = mesh();
    return wanted;
  }
  // Over another number of devices, e.g. in a program exported for fewer: it says nothing about these.
  if (wanted.mesh->size() != mesh()->size()) return Replicated(rank);
  if (auto over = OverMesh(wanted, mesh())) return over->Closed();
  return wanted;
}

std::optional<Sharding> AdoptManual(const Sharding& sharding, const AxisList& manual) {
  if (sharding.manual == manual) return sharding;
  Sharding adopted = sharding;
  adopted.manual = manual;
  const AxisList split = sharding.DimAxes();
  for (const AxisList* axes : {&manual, &sharding.manual}) {
    for (const AxisRef& ref : *axes) {
      if (Overlaps(split, ref) || Overlaps(sharding.unreduced, ref)) return std::nullopt;
    }
  }
  return adopted;
}

const std::shared_ptr<Context::Versions>& Context::SharedVersionsOf(const LocalValue& value) {
  std::shared_ptr<Versions>& versions = versions_[{value.local, value.global.dims()}];
  if (versions == nullptr) versions = std::make_shared<Versions>(Versions{{value.sharding.Closed(), value.local}});
  return versions;
}

std::vector<Sharding> Context::VersionShardings(const LocalValue& value) {
  std::vector<Sharding> shardings = {value.sharding};
  for (const Version& version : VersionsOf(value)) {
    if (version.sharding != value.sharding) shardings.push_back(version.sharding);
  }
  return shardings;
}

void Context::Alias(const LocalValue& alias, const LocalValue& of) {
  auto versions = SharedVersionsOf(of);  // a copy: another entry may move those of the map
  versions_[{alias.local, alias.global.dims()}] = std::move(versions);
}

int Context::StepsToRemake(const LocalValue& value) const {
  const auto it = steps_to_remake_.find(value.origin);
  return it == steps_to_remake_.end() ? 0 : it->second;
}

double Context::RemakingCost(const LocalValue& value, const Sharding& to) {
  const int steps = StepsToRemake(value);
  const bool spreads = value.origin != nullptr && value.origin->opcode() == Opcode::kBroadcast;
  if (steps == 0 && !(spreads && Has(*value.origin->operand(0)))) return kNever;
  const std::optional<Shardings> operands = OperandsToRemake(value, to);
  if (!operands) return kNever;
  double cost = spreads ? 0 : kBytesPerRemadeElement * static_cast<double>(ShardShape(value.global, to).ElementCount());
  for (size_t i = 0; i < operands->size(); ++i) {
    cost += ReshardCost(Value(*value.origin->operand(static_cast<int64_t>(i))), (*operands)[i]);
  }
  return cost;
}

double Context::ReshardCost(const LocalValue& value, const Sharding& to) {
  if (!value.global.IsArray()) return 0;
  if (IsCheapToRemake(value)) return 0;
  double best = kNever;
  for (const Version& version : VersionsOf(value)) {
    auto from = AdoptManual(version.sharding, to.manual);
    if (from) best = std::min(best, module_->planner->Cost(*from, to, value.global));
  }
  if (best > 0) best = std::min(best, RemakingCost(value, to));
  if (value.unchanged && GrowthOfLoop(value, to) <= module_->gathered_budget) best *= kShareOfStep;
  const Demands* before = module_->options.before;
  return before != nullptr && before->ByOthers(value.key, to, demanding_) ? best * kCostOfShared : best;
}

Reason Context::ReasonOf(const LocalValue& value, const Sharding& to, const ReshardPlan& plan) {
  Reason reason;
  if (current_ != nullptr) {
    reason.wanted_by = current_->name();
    reason.source = current_->metadata();
  }
  reason.is_reshard = true;
  if (value.origin != nullptr) reason.value = value.origin->name();
  reason.shape = value.global;
  reason.from = value.sharding;
  reason.to = to;
  reason.plan = plan.ToString();
  reason.cost = plan.Cost();
  for (const Version& version : VersionsOf(value)) {
    const std::optional<Sharding> from = AdoptManual(version.sharding, to.manual);
    if (!from) continue;
    const double cost = module_->planner->Cost(*from, to, value.global);
    if (cost > reason.cost) reason.others.emplace_back(from->ToString(), cost);
  }
  return reason;
}

absl::StatusOr<Instruction*> Context::Reshard(const LocalValue& value, const Sharding& to_in) {
  if (!value.global.IsArray()) return value.local;
  const Sharding to = to_in.Closed();
  if (to != value.sharding || !TakesAnySharding(demanding_)) module_->demands.Add(value.key, to, demanding_);
  for (const Version& version : VersionsOf(value)) {
    if (version.sharding == to) return version.local;
  }
  // Partial results of one reduction become whole before they become partial results of another.
  if (!to.unreduced.empty() && !value.sharding.unreduced.empty() && to.reduction != value.sharding.reduction) {
    Sharding whole = to;
    whole.unreduced.clear();
    GW_RETURN_IF_ERROR(Reshard(value, whole).status());
  }
  const auto [best, source, failure] = NearestWay(value, to);
  if (best != nullptr && best->Cost() > RemakingCost(value, to)) {
    GW_ASSIGN_OR_RETURN(Instruction * made, RemakeFromOperands(this, value, to));
    VersionsOf(value).push_back({to, made});
    return made;
  }
  if (value.unchanged) module_->gathered_budget -= GrowthOfLoop(value, to);
  const bool remade = IsCheapToRemake(value) && (best == nullptr || best->HasSteps());
  if (best == nullptr && !remade) {
    if (!failure.ok()) return failure;
    return absl::InvalidArgumentError(
        absl::StrCat("cannot reshard from ", value.sharding.ToString(), " to ", to.ToString(), ": manual axes differ"));
  }
  if (best != nullptr && module_->options.record_reasons) {
    builder_.set_metadata(WithReason(CurrentMetadata(), module_->reasons.size()));
    module_->reasons.push_back(ReasonOf(value, to, *best));
  }
  Instruction* made = nullptr;
  if (remade) {
    GW_ASSIGN_OR_RETURN(made, RemadeAs(value, to));
  } else {
    made = EmitReshard(*best, &collectives_, source);
  }
  if (module_->options.record_reasons) builder_.set_metadata(CurrentMetadata());
  VersionsOf(value).push_back({to, made});
  return made;
}

Context::Way Context::NearestWay(const LocalValue& value, const Sharding& to) {
  Way nearest;
  for (const Version& version : VersionsOf(value)) {
    const std::optional<Sharding> from = AdoptManual(version.sharding, to.manual);
    if (!from) continue;
    const absl::StatusOr<const ReshardPlan*> plan = module_->planner->Plan(*from, to, value.global);
    if (!plan.ok()) {
      nearest.failure = plan.status();
    } else if (nearest.plan == nullptr || (*plan)->Cost() < nearest.plan->Cost()) {
      nearest.plan = *plan;
      nearest.source = version.local;
    }
  }
  return nearest;
}

absl::StatusOr<Instruction*> Context::RemadeAs(const LocalValue& value, const Sharding& to) {
  Sharding whole = to;
  whole.unreduced.clear();
  GW_ASSIGN_OR_RETURN(Instruction * made, Remake(this, value, whole));
  if (whole == to) return made;
  GW_ASSIGN_OR_RETURN(const ReshardPlan* partial, module_->planner->Plan(whole, to, value.global));
  return EmitReshard(*partial, &collectives_, made);
}

Instruction* Context::ShardOffset(const Sharding& sharding, const Shape& global, int64_t dim) {
  const int64_t extent = ShardExtent(global.dim(dim), sharding.ShardCount(dim));
  return coordinates_.Scaled(sharding.mesh, sharding.dims[dim].axes, extent);
}

Instruction* Context::WithinAlong(int64_t dim, int64_t begin, int64_t end, const Sharding& sharding,
                                  const Shape& global, const Shape& shard) {
  const Shape line(DType::kS32, {shard.dim(dim)});
  Instruction *offset = ShardOffset(sharding, global, dim), *place = builder_.Iota(line, 0);
  const auto compare = [&](hlo::ComparisonDirection direction, int64_t bound) {
    Instruction* own = builder_.Binary(Opcode::kSubtract, builder_.Index(bound), offset);
    return builder_.Compare(direction, place, builder_.BroadcastScalar(own, line));
  };
  Instruction* inside = compare(hlo::ComparisonDirection::kLt, end);
  if (begin > 0) inside = builder_.Binary(Opcode::kAnd, compare(hlo::ComparisonDirection::kGe, begin), inside);
  return builder_.Broadcast(inside, WithDType(WithoutLayout(shard), DType::kPred), {dim});
}

Instruction* Context::MaskPadding(Instruction* local, const Sharding& sharding, const Shape& global,
                                  const std::vector<int64_t>& dims, Instruction* fill) {
  const Shape shape = WithoutLayout(local->shape());
  Instruction* mask = nullptr;
  for (int64_t d : dims) {
    if (!sharding.IsSplit(d) || global.dim(d) % sharding.ShardCount(d) == 0) continue;
    Instruction* inside = WithinAlong(d, 0, global.dim(d), sharding, global, shape);
    mask = mask == nullptr ? inside : builder_.Binary(Opcode::kAnd, mask, inside);
  }
  if (mask == nullptr) return local;
  return builder_.Select(mask, local, builder_.BroadcastScalar(fill, shape));
}

const Instruction* Context::LoopOf(const hlo::Computation& body) {
  auto& loops = module_->loops;
  if (!loops) {
    loops.emplace();
    for (const auto& computation : module_->source->computations()) {
      for (const auto& instruction : computation->instructions()) {
        if (instruction->opcode() != Opcode::kWhile) continue;
        const auto [it, is_first] = loops->emplace(instruction->called()[1], instruction.get());
        if (!is_first) it->second = nullptr;
      }
    }
  }
  const auto it = loops->find(&body);
  return it == loops->end() ? nullptr : it->second;
}

hlo::Computation* Context::CloneCallee(const hlo::Computation* callee) {
  return module_->target->CloneComputation(*callee, &module_->cloned);
}

std::vector<hlo::Computation*> Context::CloneCallees(const Instruction& instruction) {
  std::vector<hlo::Computation*> callees;
  for (const hlo::Computation* callee : instruction.called()) callees.push_back(CloneCallee(callee));
  return callees;
}

Instruction* Context::Clone(const Instruction& of, Shape shape, std::vector<Instruction*> operands) {
  Instruction* clone = target_->AddClone(of, std::move(shape), std::move(operands));
  clone->set_called(CloneCallees(of));
  clone->set_shardings(std::nullopt);
  return clone;
}

void Context::ReportFallback(const Instruction& instruction, std::string reason) {
  module_->fallbacks.push_back(
      {absl::StrCat("%", instruction.name()), std::move(reason), instruction.shape().ByteSize()});
}

Instruction* Context::Pack(const Shape& shape, const std::vector<Instruction*>& leaves) {
  if (!shape.IsTuple()) return leaves.front();
  std::vector<Instruction*> elements;
  size_t next = 0;
  for (const Shape& element : shape.tuple()) {
    const size_t count = static_cast<size_t>(LeafCount(element));
    elements.push_back(Pack(element, {leaves.begin() + next, leaves.begin() + next + count}));
    next += count;
  }
  return builder_.Tuple(std::move(elements));
}

std::vector<Instruction*> Context::Unpack(Instruction* value) {
  if (!value->shape().IsTuple()) return {value};
  std::vector<Instruction*> leaves;
  for (size_t i = 0; i < value->shape().tuple().size(); ++i) {
    for (Instruction* leaf : Unpack(builder_.GetTupleElement(value, static_cast<int64_t>(i)))) leaves.push_back(leaf);
  }
  return leaves;
}

}  // namespace gangway::partition
