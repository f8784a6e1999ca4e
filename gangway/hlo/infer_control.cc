// Shape inference of operations that name values or call computations: parameter, constant, tuples, call, while, ...
#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

absl::StatusOr<Shape> Wanted(const InferQuery& query) {
  if (!query.HasWanted()) return Wrong("the result shape must be given");
  return query.wanted;
}

absl::StatusOr<Shape> Parameter(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(const ParameterAttr* attr, AttrOf<ParameterAttr>(query));
  if (attr->number < 0) return Wrong("parameter number ", attr->number, " is negative");
  return Wanted(query);
}

absl::StatusOr<Shape> Constant(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(const ConstantAttr* attr, AttrOf<ConstantAttr>(query));
  if (attr->literal == nullptr) return Wrong("has no value");
  return attr->literal->shape();
}

absl::StatusOr<Shape> Tuple(const InferQuery& query) {
  std::vector<Shape> elements;
  for (const Shape* operand : query.operands) elements.push_back(*operand);
  return Shape::Tuple(std::move(elements));
}

absl::StatusOr<Shape> GetTupleElement(const InferQuery& query) {
  GW_ASSIGN_OR_RETURN(const TupleIndexAttr* attr, AttrOf<TupleIndexAttr>(query));
  const Shape& tuple = query.operand(0);
  if (!tuple.IsTuple()) return Wrong("the operand is no tuple");
  if (attr->index < 0 || attr->index >= static_cast<int64_t>(tuple.tuple().size())) {
    return Wrong("index ", attr->index, " is not in [0, ", tuple.tuple().size(), ")");
  }
  return tuple.tuple()[attr->index];
}

absl::StatusOr<Shape> SameAsOperand(const InferQuery& query) { return query.operand(0); }

absl::StatusOr<Shape> AfterAll(const InferQuery& query) {
  for (const Shape* operand : query.operands) {
    if (!operand->IsToken()) return Wrong("takes tokens only");
  }
  return Shape::Token();
}

std::vector<Shape> OperandShapes(const InferQuery& query) {
  std::vector<Shape> shapes;
  for (const Shape* operand : query.operands) shapes.push_back(*operand);
  return shapes;
}

// call and fusion.
absl::StatusOr<Shape> Call(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckCalledCount(query, 1));
  GW_RETURN_IF_ERROR(CheckParameters(*query.called[0], OperandShapes(query), "callee"));
  return ResultOf(*query.called[0]);
}

absl::StatusOr<Shape> While(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckCalledCount(query, 2));
  const Shape& state = query.operand(0);
  GW_RETURN_IF_ERROR(CheckParameters(*query.called[0], {state}, "condition"));
  GW_RETURN_IF_ERROR(CheckParameters(*query.called[1], {state}, "body"));
  GW_ASSIGN_OR_RETURN(Shape more, ResultOf(*query.called[0]));
  if (!Shape::Compatible(more, Shape::Scalar(DType::kPred))) {
    return Wrong("condition ", query.called[0]->name(), " gives ", more.ToString(), ", must give pred[]");
  }
  GW_ASSIGN_OR_RETURN(Shape next, ResultOf(*query.called[1]));
  if (!Shape::Compatible(next, state)) {
    return Wrong("body ", query.called[1]->name(), " gives ", next.ToString(), ", must give ", state.ToString());
  }
  return state;
}

absl::StatusOr<Shape> Conditional(const InferQuery& query) {
  if (query.operand_count() < 2 || query.called.size() + 1 != query.operands.size()) {
    return Wrong("needs a selector and one operand per branch; has ", query.operand_count(), " operands and ",
                 query.called.size(), " branches");
  }
  const Shape& selector = query.operand(0);
  const bool by_pred = Shape::Compatible(selector, Shape::Scalar(DType::kPred));
  if (!by_pred && !Shape::Compatible(selector, Shape::Scalar(DType::kS32))) {
    return Wrong("the selector must be pred[] or s32[]");
  }
  if (by_pred && query.called.size() != 2) return Wrong("a pred selects between two branches");
  GW_ASSIGN_OR_RETURN(Shape shape, ResultOf(*query.called[0]));
  for (size_t i = 0; i < query.called.size(); ++i) {
    GW_RETURN_IF_ERROR(CheckParameters(*query.called[i], {query.operand(i + 1)}, absl::StrCat("branch ", i)));
    GW_ASSIGN_OR_RETURN(Shape result, ResultOf(*query.called[i]));
    if (!Shape::Compatible(result, shape)) {
      return Wrong("branch ", i, " gives ", result.ToString(), ", branch 0 ", shape.ToString());
    }
  }
  return shape;
}

constexpr InferRow kRows[] = {
    {Opcode::kAddDependency, SameAsOperand},
    {Opcode::kAfterAll, AfterAll},
    {Opcode::kCall, Call},
    {Opcode::kConditional, Conditional},
    {Opcode::kConstant, Constant},
    {Opcode::kCustomCall, Wanted},
    {Opcode::kDomain, SameAsOperand},
    {Opcode::kFusion, Call},
    {Opcode::kGetTupleElement, GetTupleElement},
    {Opcode::kOptBarrier, SameAsOperand},
    {Opcode::kParameter, Parameter},
    {Opcode::kTuple, Tuple},
    {Opcode::kWhile, While},
};

}  // namespace

absl::Span<const InferRow> ControlInferRows() { return kRows; }

}  // namespace gangway::hlo
