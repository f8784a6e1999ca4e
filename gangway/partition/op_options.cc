// What an operation's plan may do, by the operation's kind, and what its result is worth where it lies.
#include <algorithm>

#include "gangway/hlo/splat.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/op_plan.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Zeros around a summand are the summand of zeros around the sum.
bool PadsWithZeros(const Instruction& instruction) {
  return instruction.opcode() == Opcode::kPad && IsIdentity(*instruction.operand(1), Reduction::kSum);
}

// How much of a padded array is not padding.
double FilledPart(const Instruction& pad) {
  const auto elements = [](const Instruction& i) { return static_cast<double>(i.shape().ElementCount()); };
  return std::min(1.0, elements(*pad.operand(0)) / std::max(1.0, elements(pad)));
}

// A broadcast that only adds dimensions of one element.
bool KeepsSize(const Instruction& broadcast) {
  return broadcast.shape().ElementCount() == broadcast.operand(0)->shape().ElementCount();
}

// Moves elements or adds them up: partial sums in, partial sums out.
bool CarriesPartialSums(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kNegate:
    case Opcode::kTranspose:
    case Opcode::kReshape:
    case Opcode::kCopy:
      return true;
    case Opcode::kBroadcast:
      return KeepsSize(instruction);
    default:
      return PadsWithZeros(instruction);
  }
}

bool IsLinearUser(const Instruction& user) {
  return CarriesPartialSums(user) || user.opcode() == Opcode::kReduce || user.opcode() == Opcode::kSlice;
}

// Partial sums that several users need whole are better resolved once.
bool WorthPassing(const Instruction& operand) {
  if (operand.users().size() <= 1) return true;
  return std::all_of(operand.users().begin(), operand.users().end(),
                     [](const Instruction* u) { return IsLinearUser(*u); });
}

bool MakesPartialSums(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kDot:
    case Opcode::kConvolution:
    case Opcode::kReduce:
    case Opcode::kScatter:
      return true;
    default:
      return false;
  }
}

constexpr int kMaxAddends = 32;
constexpr double kShareOfStep = 0.125;  // of what is done once after a loop

// The last of the operations that carry the instruction's partial sums, each used by the next only.
const Instruction* EndOfSum(const Instruction& instruction) {
  const Instruction* end = &instruction;
  for (int steps = 0; steps < kMaxAddends && end->users().size() == 1 && CarriesPartialSums(*end->users()[0]); ++steps)
    end = end->users()[0];
  return end;
}

// The addends of the sum that an instruction's result ends up in, itself left out: products and reductions, each used
// there only.
std::vector<const Instruction*> OtherAddends(const Instruction& instruction) {
  std::vector<const Instruction*> addends, open = {EndOfSum(instruction)};
  for (int visited = 0; !open.empty() && visited < 2 * kMaxAddends; ++visited) {
    const Instruction* next = open.back();
    open.pop_back();
    if (next == &instruction) continue;
    if (MakesPartialSums(*next)) {
      addends.push_back(next);
    } else if (CarriesPartialSums(*next)) {
      for (const Instruction* operand : next->operands()) {
        if (operand->users().size() == 1) open.push_back(operand);
      }
    }
  }
  return addends;
}

// A loop adds the result to a part of its state in every step and does nothing else with it: it is made whole once,
// after the loop (passes/reduce_after_loop.cc).
bool IsAddedUpByLoop(const Instruction& sum) {
  if (sum.opcode() != Opcode::kAdd || sum.users().size() != 1) return false;
  const Instruction& root = *sum.users()[0];
  if (root.opcode() != Opcode::kTuple || !root.IsRoot()) return false;
  std::vector<const Instruction*> open = {&sum};
  for (int visited = 0; !open.empty() && visited < kMaxAddends; ++visited) {
    const Instruction* next = open.back();
    open.pop_back();
    for (const Instruction* operand : next->operands()) {
      if (operand->users().size() != 1) continue;
      if (operand->opcode() == Opcode::kAdd) open.push_back(operand);
      const auto* element = operand->attr_if<hlo::TupleIndexAttr>();
      if (element != nullptr && operand->operand(0)->opcode() == Opcode::kParameter &&
          root.operand(element->index) == &sum) {
        return true;
      }
    }
  }
  return false;
}

// The one reader of the stack that a loop makes of the value, one step's on the other, from a part of its state that
// nothing else reads; null when there is no such thing.
const Instruction* StackOf(const Instruction& value, Context& context) {
  if (value.users().size() != 1) return nullptr;
  const Instruction& update = *value.users()[0];
  if (update.opcode() != Opcode::kDynamicUpdateSlice || update.operand(1) != &value || update.users().size() != 1) {
    return nullptr;
  }
  const Instruction &stack = *update.operand(0), &root = *update.users()[0];
  const auto* element = stack.attr_if<hlo::TupleIndexAttr>();
  if (element == nullptr || stack.operand(0)->opcode() != Opcode::kParameter || stack.users().size() != 1)
    return nullptr;
  if (!root.IsRoot() || root.opcode() != Opcode::kTuple || root.operand(element->index) != &update) return nullptr;
  const Instruction* loop = context.LoopOf(*value.parent());
  if (loop == nullptr) return nullptr;
  const Instruction* reader = nullptr;
  for (const Instruction* user : loop->users()) {
    const auto* read = user->attr_if<hlo::TupleIndexAttr>();
    if (read == nullptr) return nullptr;
    if (read->index != element->index) continue;
    if (reader != nullptr) return nullptr;
    reader = user;
  }
  return reader;
}

// Some loop around adds up the result, or stacks of it that are to lie as `wanted`, not split by the axes that the sums
// are over.
bool IsAddedUp(const Instruction& instruction, const Sharding& sharding, const Sharding& wanted, Context& context) {
  const AxisList split = wanted.DimAxes();
  const bool scatters = std::any_of(sharding.unreduced.begin(), sharding.unreduced.end(),
                                    [&](const AxisRef& axis) { return Overlaps(split, axis); });
  const Instruction* end = EndOfSum(instruction);
  while (!IsAddedUpByLoop(*end)) {
    const Instruction* stack = scatters ? nullptr : StackOf(*end, context);
    if (stack == nullptr) return false;
    end = EndOfSum(*stack);
  }
  return true;
}

bool IsPartialAlike(const LocalValue& value, const Sharding& sharding) {
  return value.sharding.unreduced == sharding.unreduced && value.sharding.reduction == sharding.reduction &&
         SameMesh(value.sharding.mesh, sharding.mesh);
}

// What part of the cost of resolving partial sums is this instruction's: nothing when other addends lie alike, an equal
// share when they may come to.
double ShareOfSum(const Instruction& instruction, const Sharding& sharding, const Context& context) {
  if (sharding.reduction != Reduction::kSum) return 1;
  double addends = 1;
  for (const Instruction* other : OtherAddends(instruction)) {
    if (!context.Has(*other)) {
      addends += 1;
    } else if (IsPartialAlike(context.Value(*other), sharding)) {
      return 0;
    }
  }
  return 1 / addends;
}

// To have a leaf that lies as `sharding` in every way it was asked for in an earlier run; without one, or where it was
// only used as it was, as completion wants it.
double CostToUsers(const Instruction& instruction, int64_t leaf, const Sharding& sharding, const Sharding& wanted,
                   Context& context) {
  const Shape shape =
      WithoutLayout(instruction.shape().IsTuple() ? Leaves(instruction.shape())[leaf] : instruction.shape());
  ReshardPlanner& planner = *context.module().planner;
  const Demands* before = context.module().options.before;
  const std::vector<Sharding> demanded = before == nullptr ? Shardings{} : before->Of({&instruction, leaf});
  if (demanded.empty()) return planner.Cost(sharding, wanted, shape);
  double cost = 0;
  for (const Sharding& demand : demanded) {
    if (demand.manual == sharding.manual) cost += planner.Cost(sharding, demand, shape);
  }
  return cost;
}

}  // namespace

double ResultCost(const Instruction& instruction, int64_t leaf, const Sharding& sharding, Context& context) {
  const Sharding wanted = Context::WithManual(context.Wanted(instruction, leaf), sharding.manual);
  if (leaf > 0 || sharding.unreduced.empty()) return CostToUsers(instruction, leaf, sharding, wanted, context);
  Sharding whole = sharding;
  whole.unreduced.clear();
  if (sharding.reduction == Reduction::kSum && IsAddedUp(instruction, sharding, wanted, context)) {
    return kShareOfStep * CostToUsers(instruction, leaf, sharding, wanted, context);
  }
  double share = ShareOfSum(instruction, sharding, context);
  // Zeros that are put around a summand are summed with it, whoever else is.
  if (PadsWithZeros(instruction)) share = std::max(share, FilledPart(instruction));
  const double joined = share == 1 ? 0 : CostToUsers(instruction, leaf, whole, wanted, context);
  return share * CostToUsers(instruction, leaf, sharding, wanted, context) + (1 - share) * joined;
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
      // Over zero the parts of a sum are infinities of either sign, which add up to no number.
      if (IsFloat(instruction.shape().dtype()) && hlo::IsNeverZero(instruction.operand(1))) options.partial_ok = {0};
      break;
    case Opcode::kNegate:
    case Opcode::kCopy:
    case Opcode::kTranspose:
    case Opcode::kReshape:
    case Opcode::kSlice:
    case Opcode::kReverse:
      options.partial_ok = {0};
      break;
    case Opcode::kBroadcast:
      if (KeepsSize(instruction)) options.partial_ok = {0};
      break;
    case Opcode::kPad:
      if (PadsWithZeros(instruction)) options.partial_ok = {0};
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

}  // namespace gangway::partition
