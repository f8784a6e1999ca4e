#include "gangway/hlo/builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/hlo/infer.h"

namespace gangway::hlo {
namespace {

absl::StatusOr<Shape> Infer(Opcode opcode, const std::vector<Instruction*>& operands, const Attributes& attributes,
                            const std::vector<Computation*>& called, const Shape& wanted) {
  std::vector<const Shape*> shapes;
  shapes.reserve(operands.size());
  for (const Instruction* operand : operands) shapes.push_back(&operand->shape());
  std::vector<const Computation*> computations(called.begin(), called.end());
  return InferShape(opcode, shapes, attributes, computations, wanted);
}

}  // namespace

absl::StatusOr<Instruction*> Builder::TryAdd(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes,
                                             std::vector<Computation*> called, const Shape& wanted) {
  GW_ASSIGN_OR_RETURN(Shape shape, Infer(opcode, operands, attributes, called, wanted));
  if (wanted.dtype() != DType::kInvalid && !Shape::Compatible(shape, wanted)) {
    return absl::InvalidArgumentError(
        absl::StrCat(OpcodeName(opcode), ": gives ", shape.ToString(), ", declared as ", wanted.ToString()));
  }
  Instruction* added = computation_->Add(opcode, std::move(shape), std::move(operands), std::move(attributes));
  added->set_called(std::move(called));
  if (!metadata_.empty()) added->set_metadata(metadata_);
  return added;
}

Instruction* Builder::Add(Opcode opcode, std::vector<Instruction*> operands, Attributes attributes,
                          std::vector<Computation*> called, const Shape& wanted) {
  absl::StatusOr<Instruction*> added =
      TryAdd(opcode, std::move(operands), std::move(attributes), std::move(called), wanted);
  GW_CHECK(added.ok(), "in computation ", computation_->name(), ": ", added.status().message());
  return *added;
}

Instruction* Builder::Parameter(int64_t number, Shape shape, std::string name) {
  GW_CHECK(number >= 0, "parameter ", name);
  Instruction* added =
      computation_->Add(Opcode::kParameter, std::move(shape), {}, ParameterAttr{number}, std::move(name));
  if (!metadata_.empty()) added->set_metadata(metadata_);
  return added;
}

Instruction* Builder::Constant(Literal literal) {
  return Add(Opcode::kConstant, {}, ConstantAttr{std::make_shared<const Literal>(std::move(literal))});
}

Instruction* Builder::Scalar(DType dtype, double value) { return Constant(SplatLiteral(Shape::Scalar(dtype), value)); }

Instruction* Builder::Index(int64_t value) {
  return Constant(Literal::Scalar<int32_t>(DType::kS32, static_cast<int32_t>(value)));
}

Instruction* Builder::Splat(const Shape& shape, double value) {
  Instruction* scalar = Scalar(shape.dtype(), value);
  return shape.rank() == 0 ? scalar : BroadcastScalar(scalar, shape);
}

Instruction* Builder::Unary(Opcode opcode, Instruction* x) { return Add(opcode, {x}); }

Instruction* Builder::Binary(Opcode opcode, Instruction* x, Instruction* y) { return Add(opcode, {x, y}); }

Instruction* Builder::Compare(ComparisonDirection direction, Instruction* x, Instruction* y) {
  return Add(Opcode::kCompare, {x, y}, CompareAttr{direction, ComparisonType::kDefault});
}

Instruction* Builder::Select(Instruction* predicate, Instruction* on_true, Instruction* on_false) {
  return Add(Opcode::kSelect, {predicate, on_true, on_false});
}

Instruction* Builder::Convert(Instruction* x, DType dtype) {
  if (x->shape().dtype() == dtype) return x;
  return Add(Opcode::kConvert, {x}, {}, {}, WithDType(WithoutLayout(x->shape()), dtype));
}

Instruction* Builder::Broadcast(Instruction* x, const Shape& shape, DimVector dims) {
  return Add(Opcode::kBroadcast, {x}, DimensionsAttr{std::move(dims)}, {},
             WithDType(WithoutLayout(shape), x->shape().dtype()));
}

Instruction* Builder::BroadcastScalar(Instruction* x, const Shape& shape) { return Broadcast(x, shape, {}); }

Instruction* Builder::Reshape(Instruction* x, DimVector dims) {
  return Add(Opcode::kReshape, {x}, {}, {}, Shape(x->shape().dtype(), std::move(dims)));
}

Instruction* Builder::Transpose(Instruction* x, DimVector permutation) {
  return Add(Opcode::kTranspose, {x}, DimensionsAttr{std::move(permutation)});
}

Instruction* Builder::Slice(Instruction* x, DimVector starts, DimVector limits, DimVector strides) {
  if (strides.empty()) strides.assign(starts.size(), 1);
  return Add(Opcode::kSlice, {x}, SliceAttr{std::move(starts), std::move(limits), std::move(strides)});
}

Instruction* Builder::DynamicSlice(Instruction* x, std::vector<Instruction*> starts, DimVector sizes) {
  starts.insert(starts.begin(), x);
  return Add(Opcode::kDynamicSlice, std::move(starts), DynamicSliceAttr{std::move(sizes)});
}

Instruction* Builder::DynamicUpdateSlice(Instruction* x, Instruction* update, std::vector<Instruction*> starts) {
  starts.insert(starts.begin(), {x, update});
  return Add(Opcode::kDynamicUpdateSlice, std::move(starts));
}

Instruction* Builder::Pad(Instruction* x, Instruction* value, std::vector<PadDim> dims) {
  return Add(Opcode::kPad, {x, value}, PadAttr{std::move(dims)});
}

Instruction* Builder::Concatenate(std::vector<Instruction*> parts, int64_t dim) {
  return Add(Opcode::kConcatenate, std::move(parts), DimensionsAttr{{dim}});
}

Instruction* Builder::Iota(const Shape& shape, int64_t dim) {
  return Add(Opcode::kIota, {}, DimensionsAttr{{dim}}, {}, WithoutLayout(shape));
}

Instruction* Builder::Reduce(Instruction* x, Instruction* init, DimVector dims, Computation* to_apply) {
  return Add(Opcode::kReduce, {x, init}, DimensionsAttr{std::move(dims)}, {to_apply});
}

Instruction* Builder::Dot(Instruction* lhs, Instruction* rhs, DotAttr attr, DType result) {
  // The element type is all that is wanted here, so the shape TryAdd would insist on is found first.
  absl::StatusOr<Shape> shape = Infer(Opcode::kDot, {lhs, rhs}, attr, {}, Shape::Scalar(result));
  GW_CHECK(shape.ok(), "in computation ", computation_->name(), ": ", shape.status().message());
  return Add(Opcode::kDot, {lhs, rhs}, std::move(attr), {}, *shape);
}

Instruction* Builder::Tuple(std::vector<Instruction*> elements) { return Add(Opcode::kTuple, std::move(elements)); }

Instruction* Builder::GetTupleElement(Instruction* tuple, int64_t index) {
  return Add(Opcode::kGetTupleElement, {tuple}, TupleIndexAttr{index});
}

Instruction* Builder::PartitionId() { return Add(Opcode::kPartitionId, {}); }

Computation* Builder::ScalarComputation(Opcode opcode, DType dtype) {
  Module* module = computation_->module();
  const std::string name = absl::StrCat(OpcodeName(opcode), "_", DTypeName(dtype));
  const Shape scalar = Shape::Scalar(dtype);
  if (Computation* found = module->FindComputation(name)) {
    // A user's computation may have the name; it is ours only if it does the same.
    const Instruction* root = found->root();
    if (found->size() == 3 && root != nullptr && root->opcode() == opcode && root->shape().dtype() == dtype &&
        root->operand(0) == found->parameter(0) && root->operand(1) == found->parameter(1)) {
      return found;
    }
  }
  Computation* made = module->AddComputation(name);
  Builder builder(made);
  Instruction* x = builder.Parameter(0, scalar, "x");
  Instruction* y = builder.Parameter(1, scalar, "y");
  made->set_root(builder.Binary(opcode, x, y));
  return made;
}

}  // namespace gangway::hlo
