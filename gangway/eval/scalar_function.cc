#include "gangway/eval/scalar_function.h"

#include "absl/container/flat_hash_map.h"
#include "gangway/base/status.h"
#include "gangway/eval/elementwise.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;
using Lanes = std::vector<Literal>;  // one per leaf of an instruction's shape

Shape LaneShape(DType dtype, int64_t lanes) { return Shape(dtype, {lanes}); }

void Flatten(const Value& value, Lanes* leaves) {
  if (!value.IsTuple()) return leaves->push_back(value.array());
  for (const Value& element : value.elements()) Flatten(element, leaves);
}

// For bodies with control flow or anything else that is not elementwise: one lane after the other.
absl::StatusOr<Lanes> OneByOne(Interpreter& interpreter, const hlo::Computation& computation, int64_t lanes,
                               const Lanes& arguments) {
  Lanes results;
  for (const Shape& leaf : Leaves(computation.root()->shape())) results.emplace_back(LaneShape(leaf.dtype(), lanes));
  for (int64_t lane = 0; lane < lanes; ++lane) {
    std::vector<Value> scalars;
    for (const Literal& argument : arguments) {
      int width = ByteWidth(argument.shape().dtype());
      Literal scalar(Shape::Scalar(argument.shape().dtype()));
      std::memcpy(scalar.data(), argument.data() + (argument.shape().ElementCount() == 1 ? 0 : lane * width), width);
      scalars.emplace_back(std::move(scalar));
    }
    GW_ASSIGN_OR_RETURN(Value value, interpreter.RunOnOne(computation, std::move(scalars)));
    Lanes leaves;
    Flatten(value, &leaves);
    for (size_t i = 0; i < leaves.size(); ++i) {
      std::memcpy(results[i].data() + lane * leaves[i].bytes().size(), leaves[i].data(), leaves[i].bytes().size());
    }
  }
  return results;
}

bool CanLift(const hlo::Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kParameter:
    case Opcode::kConstant:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kReshape:
    case Opcode::kBroadcast:
      break;
    default:
      if (!IsLiftable(instruction.opcode())) return false;
  }
  for (const Shape& leaf : Leaves(instruction.shape())) {
    if (!leaf.IsArray() || leaf.rank() != 0) return false;
  }
  return true;
}

bool CanLift(const hlo::Computation& computation) {
  for (const auto& instruction : computation.instructions()) {
    if (!CanLift(*instruction)) return false;
  }
  return true;
}

Lanes TupleElement(const hlo::Instruction& get, const Lanes& tuple) {
  const std::vector<Shape>& shapes = get.operand(0)->shape().tuple();
  int64_t index = get.attr<hlo::TupleIndexAttr>().index, first = 0;
  for (int64_t i = 0; i < index; ++i) first += LeafCount(shapes[i]);
  return Lanes(tuple.begin() + first, tuple.begin() + first + LeafCount(shapes[index]));
}

using Environment = absl::flat_hash_map<const hlo::Instruction*, Lanes>;

absl::StatusOr<Lanes> Lift(const hlo::Instruction& instruction, int64_t lanes, const Environment& environment,
                           Lanes& arguments) {
  switch (instruction.opcode()) {
    case Opcode::kParameter:
      return Lanes{std::move(arguments[instruction.attr<hlo::ParameterAttr>().number])};
    case Opcode::kConstant:
      return Lanes{*instruction.attr<hlo::ConstantAttr>().literal};
    case Opcode::kReshape:
    case Opcode::kBroadcast:
      return environment.at(instruction.operand(0));
    case Opcode::kGetTupleElement:
      return TupleElement(instruction, environment.at(instruction.operand(0)));
    case Opcode::kTuple: {
      Lanes all;
      for (const hlo::Instruction* operand : instruction.operands()) {
        const Lanes& leaves = environment.at(operand);
        all.insert(all.end(), leaves.begin(), leaves.end());
      }
      return all;
    }
    default:
      break;
  }
  std::vector<const Literal*> operands;
  for (const hlo::Instruction* operand : instruction.operands()) operands.push_back(&environment.at(operand).front());
  GW_ASSIGN_OR_RETURN_WITH(Literal result,
                           EvaluateElementwise(instruction, operands, LaneShape(instruction.shape().dtype(), lanes)),
                           absl::StrCat("instruction ", instruction.name()));
  return Lanes{std::move(result)};
}

// Repeats what stayed one element because it does not depend on the lane.
Literal Spread(Literal literal, int64_t lanes) {
  if (literal.shape().dims() == DimVector{lanes}) return literal;
  return GatherLanes(literal, std::vector<int64_t>(lanes, 0));
}

}  // namespace

absl::StatusOr<std::vector<Literal>> ApplyToLanes(Interpreter& interpreter, const hlo::Computation& computation,
                                                  int64_t lanes, std::vector<Literal> arguments) {
  if (!CanLift(computation)) return OneByOne(interpreter, computation, lanes, arguments);
  Environment environment;
  for (const auto& instruction : computation.instructions()) {
    GW_ASSIGN_OR_RETURN(environment[instruction.get()], Lift(*instruction, lanes, environment, arguments));
  }
  Lanes results = std::move(environment.at(computation.root()));
  for (Literal& result : results) result = Spread(std::move(result), lanes);
  return results;
}

std::optional<Opcode> AsBinary(const hlo::Computation& computation) {
  const hlo::Instruction* root = computation.root();
  if (computation.parameters().size() != 2 || root->operand_count() != 2) return std::nullopt;
  if (!hlo::IsElementwise(root->opcode()) || root->opcode() == Opcode::kCompare) return std::nullopt;
  const hlo::Instruction *x = computation.parameter(0), *y = computation.parameter(1);
  if (!Shape::Compatible(x->shape(), root->shape()) || !Shape::Compatible(y->shape(), root->shape()))
    return std::nullopt;
  bool in_order = root->operand(0) == x && root->operand(1) == y;
  bool swapped = root->operand(0) == y && root->operand(1) == x;
  switch (root->opcode()) {
    case Opcode::kAdd:
    case Opcode::kMultiply:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
      if (in_order || swapped) return root->opcode();
      return std::nullopt;
    default:
      if (in_order) return root->opcode();
      return std::nullopt;
  }
}

Literal GatherLanes(const Literal& from, absl::Span<const int64_t> indices) {
  DType dtype = from.shape().dtype();
  size_t width = ByteWidth(dtype);
  Literal result(LaneShape(dtype, static_cast<int64_t>(indices.size())));
  for (size_t i = 0; i < indices.size(); ++i) {
    std::memcpy(result.data() + i * width, from.data() + indices[i] * width, width);
  }
  return result;
}

}  // namespace gangway::eval
