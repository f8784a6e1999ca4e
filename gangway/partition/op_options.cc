// What an operation's plan may do, by the operation's kind, and what its result is worth where it lies.
#include <algorithm>

#include "gangway/partition/op_plan.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;

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
    default:
      return false;
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
bool IsAddedUpByLoop(const Instruction& instruction) {
  const Instruction* sum = EndOfSum(instruction);
  if (sum->opcode() != Opcode::kAdd || sum->users().size() != 1) return false;
  const Instruction& root = *sum->users()[0];
  if (root.opcode() != Opcode::kTuple || !root.IsRoot()) return false;
  return std::any_of(sum->operands().begin(), sum->operands().end(), [&](const Instruction* operand) {
    const auto* element = operand->attr_if<hlo::TupleIndexAttr>();
    return element != nullptr && operand->operand(0)->opcode() == Opcode::kParameter && operand->users().size() == 1 &&
           root.operand(element->index) == sum;
  });
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
  const Shape shape = WithoutLayout(Leaves(instruction.shape())[leaf]);
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
  if (sharding.reduction == Reduction::kSum && IsAddedUpByLoop(instruction)) {
    return kShareOfStep * CostToUsers(instruction, leaf, sharding, wanted, context);
  }
  const double share = ShareOfSum(instruction, sharding, context);
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

}  // namespace gangway::partition
