#include "gangway/cost/fusion.h"

#include <vector>

#include "gangway/cost/operation_cost.h"

namespace gangway::cost {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Can be computed where its result is read, element by element.
bool IsFusible(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kBroadcast:
    case Opcode::kIota:
    case Opcode::kConstant:
    case Opcode::kSlice:
    case Opcode::kPad:
    case Opcode::kReverse:
    case Opcode::kDynamicSlice:
    case Opcode::kConcatenate:
    case Opcode::kTranspose:
    case Opcode::kGather:
      return true;
    default:
      return hlo::IsElementwise(i.opcode()) || i.opcode() == Opcode::kClamp;
  }
}

// Computes what it reads itself.
bool Fuses(const Instruction& i) {
  return IsFusible(i) || i.opcode() == Opcode::kReduce || i.opcode() == Opcode::kDynamicUpdateSlice;
}

// Made once, however many read it.
bool IsWorthKeeping(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kExponential:
    case Opcode::kExponentialMinusOne:
    case Opcode::kLog:
    case Opcode::kLogPlusOne:
    case Opcode::kLogistic:
    case Opcode::kTanh:
    case Opcode::kTan:
    case Opcode::kSine:
    case Opcode::kCosine:
    case Opcode::kErf:
    case Opcode::kPower:
    case Opcode::kSqrt:
    case Opcode::kRsqrt:
    case Opcode::kCbrt:
    case Opcode::kAtan2:
    case Opcode::kDivide:
    case Opcode::kRemainder:
    case Opcode::kGather:
    case Opcode::kConcatenate:
      return true;
    default:
      return false;
  }
}

// Reads the value, and is not a view of it that is read in turn.
bool Reads(const Instruction& user) {
  return (user.opcode() != Opcode::kReshape && user.opcode() != Opcode::kBitcast) || user.IsRoot();
}

bool IsKeptFor(const Instruction& value, const Instruction& reader) {
  return !Fuses(reader) && !(value.opcode() == Opcode::kTranspose && reader.opcode() == Opcode::kDot);
}

}  // namespace

bool IsMaterialized(const Instruction& i) {
  if (IsAlias(i.opcode()) || i.opcode() == Opcode::kParameter) return false;
  if (i.opcode() == Opcode::kConstant) return i.shape().ByteSize() > 1024;
  if (i.IsRoot() || !IsFusible(i)) return true;
  const bool is_worth_keeping = IsWorthKeeping(i);
  const Instruction* some_reader = nullptr;  // a square reads its operand twice, but is one reader
  std::vector<const Instruction*> views = {&i};
  while (!views.empty()) {
    const Instruction* view = views.back();
    views.pop_back();
    for (const Instruction* user : view->users()) {
      if (!Reads(*user)) {
        views.push_back(user);
        continue;
      }
      if (IsKeptFor(i, *user)) return true;
      if (some_reader == nullptr) some_reader = user;
      if (is_worth_keeping && user != some_reader) return true;
    }
  }
  return false;
}

}  // namespace gangway::cost
