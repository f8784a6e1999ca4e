// Long reductions become those of two arrays, the second all false.
//
// A CPU's compiler reduces one array in windows of 32 elements, a tree of which it keeps every level, and the array to
// begin with. Several arrays it reduces in one go, and computes their elements as it goes.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gangway/passes/passes.h"
#include "gangway/passes/replace_each.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr int64_t kWindow = 32;  // of the compiler's tree; shorter reductions are none
// Elements of one result that are added up one after the other: rounding errors grow with them.
constexpr int64_t kMaxElements = 1 << 17;
// Elements from one that is added to the next: more of them are better read in the order in which they lie.
constexpr int64_t kMaxStride = 64;

bool IsLong(const Instruction& reduce) {
  const auto& dims = reduce.attr<hlo::DimensionsAttr>().dims;
  return std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return reduce.operand(0)->shape().dim(d) > kWindow; });
}

// Short floats are added up in longer ones, which is a conversion of every element.
bool IsReducedAsItIs(DType dtype) { return !IsFloat(dtype) || ByteWidth(dtype) >= 4; }

bool CallsNothing(const Computation& combiner) {
  return std::all_of(combiner.instructions().begin(), combiner.instructions().end(),
                     [](const auto& instruction) { return instruction->called().empty(); });
}

// Elements between two that are next to one another along the dimension.
int64_t StrideOf(const Shape& shape, int64_t dim) {
  int64_t stride = 1;
  for (int64_t d = dim + 1; d < shape.rank(); ++d) stride *= shape.dim(d);
  return stride;
}

// Starting a second time from `init` changes nothing.
bool MayStartTwice(const Computation& combiner, const Instruction& init) {
  if (combiner.size() != 3) return false;
  switch (combiner.root()->opcode()) {
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
      return true;
    case Opcode::kAdd: {
      const auto* constant = init.attr_if<hlo::ConstantAttr>();
      return constant != nullptr && constant->literal->IsSplat() &&
             ElementAsDouble(init.shape().dtype(), constant->literal->data()) == 0 &&
             ImaginaryAsDouble(init.shape().dtype(), constant->literal->data()) == 0;
    }
    default:
      return false;
  }
}

// Of the dimensions to be reduced, the most minor ones that fit into one go.
DimVector FirstDims(const Shape& shape, DimVector dims) {
  std::sort(dims.begin(), dims.end());
  DimVector first;
  int64_t elements = 1;
  for (auto dim = dims.rbegin(); dim != dims.rend() && elements * shape.dim(*dim) <= kMaxElements; ++dim) {
    elements *= shape.dim(*dim);
    first.insert(first.begin(), *dim);
  }
  return first;
}

// Those of `dims` that are left when `gone` are, in the numbering that is then left.
DimVector RestOf(const DimVector& dims, const DimVector& gone) {
  DimVector rest;
  for (int64_t dim : dims) {
    if (std::find(gone.begin(), gone.end(), dim) != gone.end()) continue;
    rest.push_back(dim - std::count_if(gone.begin(), gone.end(), [&](int64_t d) { return d < dim; }));
  }
  return rest;
}

// Combines as `combiner` does, and keeps a truth value as it is.
Computation* BesideTruth(Computation& combiner, DType dtype) {
  Computation* made = combiner.module()->AddComputation("in_one_go");
  Builder builder(made);
  const Shape scalar = Shape::Scalar(dtype), truth = Shape::Scalar(DType::kPred);
  std::vector<Instruction*> parameters;
  for (int64_t i = 0; i < 4; ++i)
    parameters.push_back(builder.Parameter(i, i % 2 == 0 ? scalar : truth, absl::StrCat("p", i)));
  absl::flat_hash_map<const Instruction*, Instruction*> clones = {{combiner.parameter(0), parameters[0]},
                                                                  {combiner.parameter(1), parameters[2]}};
  for (const auto& instruction : combiner.instructions()) {
    if (instruction->opcode() == Opcode::kParameter) continue;
    std::vector<Instruction*> operands;
    for (const Instruction* operand : instruction->operands()) operands.push_back(clones.at(operand));
    clones[instruction.get()] = made->AddClone(*instruction, instruction->shape(), std::move(operands));
  }
  made->set_root(builder.Tuple({clones.at(combiner.root()), parameters[1]}));
  return made;
}

Instruction* InOneGo(Instruction* x, Instruction* init, DimVector dims, Computation& combiner, Builder& builder) {
  const DType dtype = x->shape().dtype();
  Instruction* no = builder.Constant(Literal(Shape::Scalar(DType::kPred)));
  Instruction* nothing = builder.BroadcastScalar(no, Shape(DType::kPred, x->shape().dims()));
  Instruction* reduced = builder.Add(Opcode::kReduce, {x, nothing, init, no}, hlo::DimensionsAttr{std::move(dims)},
                                     {BesideTruth(combiner, dtype)});
  return builder.GetTupleElement(reduced, 0);
}

bool Replace(Instruction* reduce, Builder& builder) {
  if (!reduce->shape().IsArray() || reduce->operand_count() != 2 || !IsLong(*reduce)) return false;
  Instruction *x = reduce->operand(0), *init = reduce->operand(1);
  Computation* combiner = reduce->called()[0];
  if (!IsReducedAsItIs(x->shape().dtype()) || !CallsNothing(*combiner)) return false;
  const DimVector& dims = reduce->attr<hlo::DimensionsAttr>().dims;
  const DimVector first = FirstDims(x->shape(), dims), rest = RestOf(dims, first);
  if (first.empty() || StrideOf(x->shape(), first.back()) > kMaxStride) return false;
  if (!rest.empty() && !MayStartTwice(*combiner, *init)) return false;
  builder.set_metadata(reduce->metadata());
  Instruction* made = InOneGo(x, init, first, *combiner, builder);
  if (!rest.empty()) made = builder.Reduce(made, init, rest, combiner);
  reduce->ReplaceAllUsesWith(made);
  return true;
}

}  // namespace

absl::StatusOr<bool> RunReduceInOneGo(hlo::Module& module) {
  const bool changed = ReplaceEach(module, Opcode::kReduce, Replace);
  if (changed) module.SortComputations();
  return changed;
}

}  // namespace gangway::passes
