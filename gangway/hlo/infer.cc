#include "gangway/hlo/infer.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_join.h"
#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

using Table = std::array<InferFunction, kOpcodeCount>;

Table BuildTable() {
  Table table{};
  for (absl::Span<const InferRow> rows : {ElementwiseInferRows(), MovementInferRows(), SliceInferRows(), DotInferRows(),
                                          WindowInferRows(), ReduceInferRows(), GatherInferRows(), ControlInferRows(),
                                          CollectiveInferRows(), LinalgInferRows(), EffectInferRows()}) {
    for (const InferRow& row : rows) table[static_cast<int>(row.opcode)] = row.infer;
  }
  return table;
}

InferFunction FunctionOf(Opcode opcode) {
  static const Table table = BuildTable();
  return table[static_cast<int>(opcode)];
}

std::string Describe(const InferQuery& query) {
  auto append = [](std::string* out, const Shape* shape) {
    absl::StrAppend(out, shape == nullptr ? "null" : shape->ToString());
  };
  return absl::StrCat(OpcodeName(query.opcode), "(", absl::StrJoin(query.operands, ", ", append), ")");
}

absl::StatusOr<Shape> Infer(const InferQuery& query) {
  const int arity = InfoOf(query.opcode).arity;
  if (arity >= 0 && query.operand_count() != arity) {
    return Wrong("takes ", arity, " operands, not ", query.operand_count());
  }
  for (const Computation* called : query.called) {
    if (called == nullptr) return Wrong("a called computation is missing");
  }
  InferFunction function = FunctionOf(query.opcode);
  if (function == nullptr) return absl::UnimplementedError("no shape inference for this operation");
  GW_ASSIGN_OR_RETURN(Shape shape, function(query));
  GW_RETURN_IF_ERROR(ValidateShape(shape));
  return shape;
}

}  // namespace

bool HasInference(Opcode opcode) { return FunctionOf(opcode) != nullptr; }

absl::StatusOr<Shape> InferShape(Opcode opcode, absl::Span<const Shape* const> operands, const Attributes& attributes,
                                 absl::Span<const Computation* const> called, const Shape& wanted) {
  InferQuery query{opcode, operands, attributes, called, wanted};
  GW_ASSIGN_OR_RETURN_WITH(Shape shape, Infer(query), Describe(query));
  if (Shape::Compatible(shape, wanted)) return wanted;
  return WithoutLayout(std::move(shape));
}

absl::Status CheckArrays(const InferQuery& query, int64_t first) {
  for (int64_t i = first; i < query.operand_count(); ++i) {
    if (!query.operand(i).IsArray()) return Wrong("operand ", i, " is no array: ", query.operand(i).ToString());
  }
  return absl::OkStatus();
}

absl::Status CheckCalledCount(const InferQuery& query, size_t count) {
  if (query.called.size() == count) return absl::OkStatus();
  return Wrong("calls ", query.called.size(), " computations, needs ", count);
}

absl::Status CheckWantedArray(const InferQuery& query) {
  if (query.wanted.IsArray()) return absl::OkStatus();
  return Wrong("the result must be an array, not ", query.wanted.ToString());
}

absl::Status CheckDims(const DimVector& dims, int64_t rank, absl::string_view list) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= rank) return Wrong(list, ": dimension ", dims[i], " is not in [0, ", rank, ")");
    if (std::find(dims.begin(), dims.begin() + i, dims[i]) != dims.begin() + i) {
      return Wrong(list, ": dimension ", dims[i], " is listed twice");
    }
  }
  return absl::OkStatus();
}

bool SameDims(const Shape& a, const Shape& b) { return a.dims() == b.dims(); }

bool HasDim(const DimVector& dims, int64_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

absl::Status CheckParameters(const Computation& called, absl::Span<const Shape> types, absl::string_view role) {
  if (called.parameters().size() != types.size()) {
    return Wrong(role, " ", called.name(), " takes ", called.parameters().size(), " parameters, is given ",
                 types.size());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const Instruction* parameter = called.parameters()[i];
    if (parameter == nullptr) return Wrong(role, " ", called.name(), " lacks parameter ", i);
    if (!Shape::Compatible(parameter->shape(), types[i])) {
      return Wrong(role, " ", called.name(), ": parameter ", i, " is ", parameter->shape().ToString(), ", is given ",
                   types[i].ToString());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> ResultOf(const Computation& called) {
  if (called.root() == nullptr) return Wrong("computation ", called.name(), " has no root");
  return called.root()->shape();
}

std::vector<Shape> TupleOrSelf(const Shape& shape) {
  if (shape.IsTuple()) return shape.tuple();
  return {shape};
}

Shape SelfOrTuple(std::vector<Shape> shapes) {
  if (shapes.size() == 1) return std::move(shapes[0]);
  return Shape::Tuple(std::move(shapes));
}

}  // namespace gangway::hlo
