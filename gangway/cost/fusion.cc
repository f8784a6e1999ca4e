#include "gangway/cost/fusion.h"

#include <algorithm>
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

// Operations that read the value, seen through reshapes; a reshape that is the result reads it too.
std::vector<const Instruction*> Readers(const Instruction& i) {
  std::vector<const Instruction*> readers, open = {&i};
  while (!open.empty()) {
    const Instruction* next = open.back();
    open.pop_back();
    for (const Instruction* user : next->users()) {
      const bool is_view = user->opcode() == Opcode::kReshape || user->opcode() == Opcode::kBitcast;
      if (is_view && !user->IsRoot()) {
        open.push_back(user);
      } else if (std::find(readers.begin(), readers.end(), user) == readers.end()) {
        readers.push_back(user);  // a square reads its operand twice, but is one reader
      }
    }
  }
  return readers;
}

}  // namespace

bool IsMaterialized(const Instruction& i) {
  if (IsAlias(i.opcode()) || i.opcode() == Opcode::kParameter) return false;
  if (i.opcode() == Opcode::kConstant) return i.shape().ByteSize() > 1024;
  if (i.IsRoot() || !IsFusible(i)) return true;
  const std::vector<const Instruction*> readers = Readers(i);
  const bool all_fuse = std::all_of(readers.begin(), readers.end(), [&](const Instruction* reader) {
    return Fuses(*reader) || (i.opcode() == Opcode::kTranspose && reader->opcode() == Opcode::kDot);
  });
  return !all_fuse || (readers.size() > 1 && IsWorthKeeping(i));
}

}  // namespace gangway::cost
