// Parameters, tuples, loops, branches and calls: computations within computations.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

// Each level is a few kilobytes of the thread's stack.
constexpr int kMaxNesting = 500;

using hlo::Instruction;
using hlo::Opcode;

Shardings WantedLeaves(const Instruction& instruction, const Context& context) {
  Shardings wanted;
  const int64_t count = LeafCount(instruction.shape());
  for (int64_t i = 0; i < count; ++i) wanted.push_back(context.Wanted(instruction, i));
  return wanted;
}

absl::StatusOr<std::vector<Instruction*>> ReshardLeaves(const LocalValues& values, const Shardings& to,
                                                        Context& context) {
  if (values.size() != to.size()) return absl::InternalError("leaves and shardings differ in number");
  std::vector<Instruction*> leaves;
  for (size_t i = 0; i < values.size(); ++i) {
    GW_ASSIGN_OR_RETURN(Instruction * leaf, context.Reshard(values[i], to[i]));
    leaves.push_back(leaf);
  }
  return leaves;
}

// Values of the leaves of `result`, which lies as `shardings` says.
void SetLeaves(const Instruction& instruction, Instruction* result, const Shardings& shardings, Context& context) {
  const std::vector<Shape> globals = Leaves(instruction.shape());
  const std::vector<Instruction*> leaves = context.Unpack(result);
  LocalValues values;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Instruction* origin = instruction.shape().IsArray() ? &instruction : nullptr;
    values.push_back({leaves[i], shardings[i], WithoutLayout(globals[i]), origin});
  }
  context.Set(instruction, std::move(values));
}

Shardings ShardingsOf(const LocalValues& values) {
  Shardings shardings;
  for (const LocalValue& value : values) shardings.push_back(value.sharding);
  return shardings;
}

// Shardings a loop or branch carries: what completion wants, with the manual axes of the values that flow in.
Shardings CarriedLeaves(const Instruction& instruction, const LocalValues& values, const Context& context) {
  Shardings wanted = WantedLeaves(instruction, context);
  for (size_t i = 0; i < wanted.size() && i < values.size(); ++i) {
    if (!instruction.has_sharding()) wanted[i].manual = values[i].sharding.manual;
  }
  return wanted;
}

absl::Status CheckPlaces(const Instruction& instruction, Context& context) {
  if (!context.coordinates().overflows()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("partition: %", instruction.name(), ": places along a split dimension do not fit 32 bits"));
}

}  // namespace

absl::Status LocalizeParameter(const Instruction&, Context&) {
  return absl::InternalError("parameters are localized with their computation");
}

absl::Status LocalizeTuple(const Instruction& instruction, Context& context) {
  LocalValues values;
  for (const Instruction* operand : instruction.operands()) {
    const LocalValues& leaves = context.Values(*operand);
    values.insert(values.end(), leaves.begin(), leaves.end());
  }
  context.Set(instruction, std::move(values));
  return absl::OkStatus();
}

absl::Status LocalizeGetTupleElement(const Instruction& instruction, Context& context) {
  const Instruction& tuple = *instruction.operand(0);
  const int64_t index = instruction.attr<hlo::TupleIndexAttr>().index;
  int64_t begin = 0;
  for (int64_t i = 0; i < index; ++i) begin += LeafCount(tuple.shape().tuple()[i]);
  const LocalValues& leaves = context.Values(tuple);
  const int64_t count = LeafCount(instruction.shape());
  context.Set(instruction, LocalValues(leaves.begin() + begin, leaves.begin() + begin + count));
  return absl::OkStatus();
}

absl::Status LocalizeOptBarrier(const Instruction& instruction, Context& context) {
  const LocalValues values = context.Values(*instruction.operand(0));
  std::vector<Instruction*> leaves;
  for (const LocalValue& value : values) leaves.push_back(value.local);
  Instruction* packed = context.Pack(instruction.shape(), leaves);
  Instruction* barrier = context.Clone(instruction, packed->shape(), {packed});
  SetLeaves(instruction, barrier, ShardingsOf(values), context);
  return absl::OkStatus();
}

absl::Status LocalizeTokenOp(const Instruction& instruction, Context& context) {
  std::vector<Instruction*> operands;
  for (const Instruction* operand : instruction.operands()) {
    const LocalValues& values = context.Values(*operand);
    std::vector<Instruction*> leaves;
    for (const LocalValue& value : values) leaves.push_back(value.local);
    operands.push_back(context.Pack(operand->shape(), leaves));
  }
  const Shardings shardings = instruction.opcode() == Opcode::kAfterAll
                                  ? Shardings{context.Replicated(0)}
                                  : ShardingsOf(context.Values(*instruction.operand(0)));
  const Shape shape =
      operands.empty() || instruction.opcode() == Opcode::kAfterAll ? Shape::Token() : operands[0]->shape();
  SetLeaves(instruction, context.Clone(instruction, shape, operands), shardings, context);
  return absl::OkStatus();
}

// Leaves of a loop's state that its body ends with as it found them.
std::vector<bool> UnchangedLeaves(const hlo::Computation& body) {
  std::vector<bool> unchanged;
  const Instruction &state = *body.parameter(0), &root = *body.root();
  if (root.opcode() != Opcode::kTuple) return unchanged;
  for (int64_t i = 0; i < root.operand_count(); ++i) {
    const Instruction& element = *root.operand(i);
    const auto* index = element.attr_if<hlo::TupleIndexAttr>();
    const bool same = index != nullptr && index->index == i && element.operand(0) == &state;
    unchanged.insert(unchanged.end(), LeafCount(element.shape()), same);
  }
  return unchanged;
}

// How the steps of a loop asked in an earlier run for a part of its state that none of them changes, if no more moves
// when it is brought about before the loop; else `carried`. Collectives of it leave the loop anyway
// (passes/hoist_collectives.cc), but only here do those who make it, and other loops, learn what it is needed as.
Sharding AsStepsAskedFor(const LocalValue& init, const ValueKey& in_body, const Sharding& carried, Context& context) {
  const Demands* before = context.module().options.before;
  if (before == nullptr || !init.global.IsArray()) return carried;
  const std::vector<Sharding> demands = before->Of(in_body);
  const auto cost_in_body = [&](const Sharding& from) {
    double cost = 0;
    for (const Sharding& to : demands) {
      if (to.manual == from.manual) cost += context.module().planner->Cost(from, to, init.global);
    }
    return cost;
  };
  const auto bytes = [&](const Sharding& sharding) { return ShardShape(init.global, sharding).ByteSize(); };
  int64_t& budget = context.module().gathered_budget;
  Sharding best = carried;
  double least = context.ReshardCost(init, carried) + cost_in_body(carried);
  for (const Sharding& demand : demands) {
    if (least == 0) break;
    if (demand == carried || demand.manual != carried.manual || !demand.unreduced.empty()) continue;
    if (bytes(demand) - bytes(carried) > budget) continue;
    const double cost = context.ReshardCost(init, demand) + cost_in_body(demand);
    if (cost > least || (cost == least && best != carried)) continue;
    best = demand;
    least = cost;
  }
  budget -= std::max<int64_t>(0, bytes(best) - bytes(carried));
  return best;
}

absl::Status LocalizeWhile(const Instruction& instruction, Context& context) {
  const LocalValues init = context.Values(*instruction.operand(0));
  const std::vector<bool> unchanged = UnchangedLeaves(*instruction.called()[1]);
  Shardings carried = CarriedLeaves(instruction, init, context);
  for (size_t i = 0; i < unchanged.size(); ++i) {
    const ValueKey in_body = {instruction.called()[1]->parameter(0), static_cast<int64_t>(i)};
    if (unchanged[i]) carried[i] = AsStepsAskedFor(init[i], in_body, carried[i], context);
  }
  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> leaves, ReshardLeaves(init, carried, context));
  Instruction* packed = context.Pack(instruction.shape(), leaves);
  const Shardings predicate = {context.Replicated(0)};
  GW_ASSIGN_OR_RETURN(hlo::Computation * condition,
                      LocalizeComputation(&context.module(), *instruction.called()[0], carried, &predicate));
  GW_ASSIGN_OR_RETURN(hlo::Computation * body, LocalizeComputation(&context.module(), *instruction.called()[1], carried,
                                                                   &carried, nullptr, unchanged));
  Instruction* loop = context.target()->AddClone(instruction, packed->shape(), {packed});
  loop->set_called({condition, body});
  loop->set_shardings(std::nullopt);
  SetLeaves(instruction, loop, carried, context);
  return absl::OkStatus();
}

absl::Status LocalizeConditional(const Instruction& instruction, Context& context) {
  GW_ASSIGN_OR_RETURN(Instruction * selector, context.Replicate(context.Value(*instruction.operand(0))));
  std::vector<Instruction*> operands = {selector};
  std::vector<hlo::Computation*> branches;
  Shardings results;
  for (size_t b = 0; b < instruction.called().size(); ++b) {
    const hlo::Computation& source = *instruction.called()[b];
    const Instruction& argument = *instruction.operand(static_cast<int64_t>(b) + 1);
    const LocalValues values = context.Values(argument);
    if (b == 0) results = CarriedLeaves(instruction, values, context);
    const Shardings carried = CarriedLeaves(*source.parameter(0), values, context);
    GW_ASSIGN_OR_RETURN(std::vector<Instruction*> leaves, ReshardLeaves(values, carried, context));
    operands.push_back(context.Pack(argument.shape(), leaves));
    GW_ASSIGN_OR_RETURN(hlo::Computation * branch, LocalizeComputation(&context.module(), source, carried, &results));
    branches.push_back(branch);
  }
  const Shape shape = ShardShape(WithoutLayout(instruction.shape()), results);
  Instruction* conditional = context.target()->AddClone(instruction, shape, std::move(operands));
  conditional->set_called(std::move(branches));
  conditional->set_shardings(std::nullopt);
  SetLeaves(instruction, conditional, results, context);
  return absl::OkStatus();
}

absl::Status LocalizeCall(const Instruction& instruction, Context& context) {
  std::vector<Instruction*> operands;
  Shardings parameters;
  for (const Instruction* operand : instruction.operands()) {
    const LocalValues values = context.Values(*operand);
    std::vector<Instruction*> leaves;
    for (const LocalValue& value : values) {
      Sharding sharding = value.sharding;
      sharding.unreduced.clear();
      GW_ASSIGN_OR_RETURN(Instruction * leaf, context.Reshard(value, sharding));
      leaves.push_back(leaf);
      parameters.push_back(std::move(sharding));
    }
    operands.push_back(context.Pack(operand->shape(), leaves));
  }
  const Shardings results = WantedLeaves(instruction, context);
  GW_ASSIGN_OR_RETURN(hlo::Computation * callee,
                      LocalizeComputation(&context.module(), *instruction.called()[0], parameters, &results));
  const Shape shape = ShardShape(WithoutLayout(instruction.shape()), results);
  Instruction* call = context.target()->AddClone(instruction, shape, std::move(operands));
  call->set_called({callee});
  call->set_shardings(std::nullopt);
  SetLeaves(instruction, call, results, context);
  return absl::OkStatus();
}

absl::StatusOr<hlo::Computation*> LocalizeComputation(ModuleState* module, const hlo::Computation& source,
                                                      const Shardings& parameters, const Shardings* results,
                                                      Shardings* final_results, const std::vector<bool>& unchanged) {
  if (module->nesting == kMaxNesting) {
    return absl::InvalidArgumentError(
        absl::StrCat("partition: ", source.name(), ": loops, branches and calls more than ", kMaxNesting, " deep"));
  }
  ++module->nesting;
  const absl::Cleanup leave = [module] { --module->nesting; };
  hlo::Computation* target = module->target->AddComputation(source.name());
  Context context(module, target);
  size_t leaf = 0;
  for (const Instruction* parameter : source.parameters()) {
    const size_t count = static_cast<size_t>(LeafCount(parameter->shape()));
    const Shardings mine(parameters.begin() + leaf, parameters.begin() + leaf + count);
    leaf += count;
    const Shape shape = ShardShape(WithoutLayout(parameter->shape()), mine);
    Instruction* local = context.Clone(*parameter, shape, {});
    SetLeaves(*parameter, local, mine, context);
    if (!unchanged.empty())
      context.MarkUnchanged(*parameter, {unchanged.begin() + leaf - count, unchanged.begin() + leaf});
  }
  for (const auto& owned : source.instructions()) {
    const Instruction& instruction = *owned;
    if (instruction.opcode() == Opcode::kParameter) continue;
    context.Begin(instruction);
    GW_RETURN_IF_ERROR_WITH(LocalizerOf(instruction.opcode())(instruction, context),
                            absl::StrCat("partition: %", instruction.name()));
    GW_RETURN_IF_ERROR(CheckPlaces(instruction, context));
  }
  const Instruction& root = *source.root();
  context.Begin(root, /*demands=*/false);
  const Shardings wanted = results != nullptr ? *results : WantedLeaves(root, context);
  GW_ASSIGN_OR_RETURN_WITH(std::vector<Instruction*> leaves, ReshardLeaves(context.Values(root), wanted, context),
                           absl::StrCat("partition: result of ", source.name()));
  GW_RETURN_IF_ERROR(CheckPlaces(root, context));
  target->set_root(context.Pack(root.shape(), leaves));
  if (final_results != nullptr) *final_results = wanted;
  return target;
}

}  // namespace gangway::partition
