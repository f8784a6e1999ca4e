// Shape inference of reduce, map, sort and topk.
#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

absl::StatusOr<Shape> Reduce(const InferQuery& query) {
  if (query.operand_count() < 2 || query.operand_count() % 2 != 0) return Wrong("needs as many values as inits");
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckCalledCount(query, 1));
  GW_ASSIGN_OR_RETURN(const DimensionsAttr* attr, AttrOf<DimensionsAttr>(query));
  const int64_t count = query.operand_count() / 2;
  const Shape& first = query.operand(0);
  GW_RETURN_IF_ERROR(CheckDims(attr->dims, first.rank(), "dimensions"));
  GW_ASSIGN_OR_RETURN(Shape result, ResultOf(*query.called[0]));
  const std::vector<Shape> combined = TupleOrSelf(result);
  if (static_cast<int64_t>(combined.size()) != count) {
    return Wrong("to_apply gives ", combined.size(), " values for ", count);
  }
  if (static_cast<int64_t>(query.called[0]->parameters().size()) != 2 * count) {
    return Wrong("to_apply must take ", 2 * count, " parameters");
  }
  DimVector dims;
  for (int64_t i = 0; i < first.rank(); ++i) {
    if (!HasDim(attr->dims, i)) dims.push_back(first.dim(i));
  }
  std::vector<Shape> shapes;
  for (int64_t i = 0; i < count; ++i) {
    if (!SameDims(query.operand(i), first)) return Wrong("operand ", i, " has other dimensions than operand 0");
    if (query.operand(count + i).rank() != 0) return Wrong("init value ", i, " is no scalar");
    if (!combined[i].IsArray() || combined[i].rank() != 0) return Wrong("to_apply must give scalars");
    shapes.push_back(Shape(combined[i].dtype(), dims));
  }
  return SelfOrTuple(std::move(shapes));
}

absl::StatusOr<Shape> Map(const InferQuery& query) {
  if (query.operand_count() < 1) return Wrong("needs an operand");
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckCalledCount(query, 1));
  std::vector<Shape> scalars;
  for (const Shape* operand : query.operands) {
    if (!SameDims(*operand, query.operand(0))) return Wrong("dimensions of the operands differ");
    scalars.push_back(Shape::Scalar(operand->dtype()));
  }
  GW_RETURN_IF_ERROR(CheckParameters(*query.called[0], scalars, "to_apply"));
  GW_ASSIGN_OR_RETURN(Shape result, ResultOf(*query.called[0]));
  if (!result.IsArray() || result.rank() != 0) return Wrong("to_apply must give a scalar");
  return WithDType(query.operand(0), result.dtype());
}

absl::StatusOr<Shape> Sort(const InferQuery& query) {
  if (query.operand_count() < 1) return Wrong("needs an operand");
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckCalledCount(query, 1));
  GW_ASSIGN_OR_RETURN(const SortAttr* attr, AttrOf<SortAttr>(query));
  GW_RETURN_IF_ERROR(CheckDims({attr->dimension}, query.operand(0).rank(), "dimensions"));
  std::vector<Shape> shapes, scalars;
  for (const Shape* operand : query.operands) {
    if (!SameDims(*operand, query.operand(0))) return Wrong("dimensions of the operands differ");
    shapes.push_back(*operand);
    scalars.insert(scalars.end(), 2, Shape::Scalar(operand->dtype()));
  }
  GW_RETURN_IF_ERROR(CheckParameters(*query.called[0], scalars, "comparator"));
  GW_ASSIGN_OR_RETURN(Shape result, ResultOf(*query.called[0]));
  if (!Shape::Compatible(result, Shape::Scalar(DType::kPred))) return Wrong("the comparator must give pred[]");
  return SelfOrTuple(std::move(shapes));
}

absl::StatusOr<Shape> TopK(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const TopKAttr* attr, AttrOf<TopKAttr>(query));
  Shape values = query.operand(0);
  if (values.rank() < 1) return Wrong("needs a dimension to search");
  const int64_t last = values.rank() - 1;
  if (attr->k < 0 || attr->k > values.dim(last)) return Wrong("k=", attr->k, " is not in [0, ", values.dim(last), "]");
  values.set_dim(last, attr->k);
  return Shape::Tuple({values, WithDType(values, DType::kS32)});
}

constexpr InferRow kRows[] = {
    {Opcode::kMap, Map},
    {Opcode::kReduce, Reduce},
    {Opcode::kSort, Sort},
    {Opcode::kTopK, TopK},
};

}  // namespace

absl::Span<const InferRow> ReduceInferRows() { return kRows; }

}  // namespace gangway::hlo
