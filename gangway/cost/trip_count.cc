#include "gangway/cost/trip_count.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "gangway/hlo/computation.h"

namespace gangway::cost {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// {"known_trip_count":{"n":"12"}}
std::optional<int64_t> FromConfig(absl::string_view config) {
  size_t at = config.find("known_trip_count");
  if (at == absl::string_view::npos) return std::nullopt;
  size_t from = config.find_first_of("0123456789", at);
  if (from == absl::string_view::npos) return std::nullopt;
  size_t to = config.find_first_not_of("0123456789", from);
  int64_t count;
  if (!absl::SimpleAtoi(config.substr(from, to - from), &count)) return std::nullopt;
  return count;
}

std::optional<int64_t> ConstantOf(const Instruction* i) {
  while (i->opcode() == Opcode::kCopy || i->opcode() == Opcode::kConvert || i->opcode() == Opcode::kReshape) {
    i = i->operand(0);
  }
  const auto* constant = i->attr_if<hlo::ConstantAttr>();
  if (constant == nullptr || !IsInteger(i->shape().dtype()) || i->shape().ElementCount() != 1) return std::nullopt;
  return ElementAsInt64(i->shape().dtype(), constant->literal->data());
}

// Index of the element of the computation's one tuple parameter that an instruction reads.
std::optional<int64_t> StateIndex(const Instruction* i) {
  if (i->opcode() != Opcode::kGetTupleElement || i->operand(0)->opcode() != Opcode::kParameter) return std::nullopt;
  return i->attr<hlo::TupleIndexAttr>().index;
}

// What an element is before the loop, or inside it when the body only passes it on.
std::optional<int64_t> InitialOf(const Instruction& loop, int64_t index) {
  const Instruction* state = loop.operand(0);
  return state->opcode() == Opcode::kTuple ? ConstantOf(state->operand(index)) : std::nullopt;
}

std::optional<int64_t> BoundOf(const Instruction& loop, const Instruction* i) {
  if (std::optional<int64_t> constant = ConstantOf(i)) return constant;
  std::optional<int64_t> index = StateIndex(i);
  if (!index.has_value()) return std::nullopt;
  const Instruction* root = loop.called()[1]->root();
  if (root->opcode() != Opcode::kTuple || StateIndex(root->operand(*index)) != index) return std::nullopt;
  return InitialOf(loop, *index);
}

// By how much the body moves the element.
std::optional<int64_t> StepOf(const Instruction& loop, int64_t index) {
  const Instruction* root = loop.called()[1]->root();
  if (root->opcode() != Opcode::kTuple) return std::nullopt;
  const Instruction* next = root->operand(index);
  if (next->opcode() != Opcode::kAdd && next->opcode() != Opcode::kSubtract) return std::nullopt;
  bool add = next->opcode() == Opcode::kAdd;
  for (int side = 0; side < (add ? 2 : 1); ++side) {
    if (StateIndex(next->operand(side)) != index) continue;
    std::optional<int64_t> step = ConstantOf(next->operand(1 - side));
    if (step.has_value() && *step != std::numeric_limits<int64_t>::min()) return add ? *step : -*step;
  }
  return std::nullopt;
}

hlo::ComparisonDirection Mirrored(hlo::ComparisonDirection direction) {
  using D = hlo::ComparisonDirection;
  switch (direction) {
    case D::kLt:
      return D::kGt;
    case D::kLe:
      return D::kGe;
    case D::kGt:
      return D::kLt;
    case D::kGe:
      return D::kLe;
    default:
      return direction;
  }
}

using Wide = __int128;  // the numbers of a program may lie at the ends of int64_t

std::optional<int64_t> Count(Wide start, Wide step, hlo::ComparisonDirection direction, Wide bound) {
  using D = hlo::ComparisonDirection;
  if (direction == D::kLe) return Count(start, step, D::kLt, bound + 1);
  if (direction == D::kGe) return Count(start, step, D::kGt, bound - 1);
  if (direction == D::kNe) return Count(start, step, step > 0 ? D::kLt : D::kGt, bound);
  Wide count = -1;
  if (direction == D::kLt && step > 0) count = std::max<Wide>(0, (bound - start + step - 1) / step);
  if (direction == D::kGt && step < 0) count = std::max<Wide>(0, (start - bound - step - 1) / -step);
  if (count < 0 || count > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return static_cast<int64_t>(count);
}

std::optional<int64_t> FromCounter(const Instruction& loop) {
  const Instruction* compare = loop.called()[0]->root();
  if (compare->opcode() != Opcode::kCompare || !loop.shape().IsTuple()) return std::nullopt;
  hlo::ComparisonDirection direction = compare->attr<hlo::CompareAttr>().direction;
  for (int side = 0; side < 2; ++side) {
    std::optional<int64_t> index = StateIndex(compare->operand(side));
    std::optional<int64_t> bound = BoundOf(loop, compare->operand(1 - side));
    if (!index.has_value() || !bound.has_value()) continue;
    std::optional<int64_t> start = InitialOf(loop, *index), step = StepOf(loop, *index);
    if (!start.has_value() || !step.has_value()) continue;
    return Count(*start, *step, side == 0 ? direction : Mirrored(direction), *bound);
  }
  return std::nullopt;
}

// The largest constant of a condition that compares.
std::optional<int64_t> FromCondition(const Computation& condition) {
  std::optional<int64_t> largest;
  bool compares = false;
  for (const auto& instruction : condition.instructions()) {
    compares |= instruction->opcode() == Opcode::kCompare;
    std::optional<int64_t> constant =
        instruction->opcode() == Opcode::kConstant ? ConstantOf(instruction.get()) : std::nullopt;
    if (constant.has_value() && *constant > 0) largest = std::max(largest.value_or(0), *constant);
  }
  return compares ? largest : std::nullopt;
}

}  // namespace

std::optional<int64_t> TripCount(const Instruction& loop) {
  if (std::optional<int64_t> known = FromConfig(loop.backend_config())) return known;
  if (std::optional<int64_t> counted = FromCounter(loop)) return counted;
  return FromCondition(*loop.called()[0]);
}

}  // namespace gangway::cost
