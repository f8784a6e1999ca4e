// Shape inference of dot and ragged-dot.
#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

absl::Status CheckPairs(const Shape& lhs, const DimVector& lhs_dims, const Shape& rhs, const DimVector& rhs_dims,
                        absl::string_view kind) {
  if (lhs_dims.size() != rhs_dims.size()) {
    return Wrong(kind, " dimensions: ", lhs_dims.size(), " of lhs, ", rhs_dims.size(), " of rhs");
  }
  for (size_t i = 0; i < lhs_dims.size(); ++i) {
    if (lhs.dim(lhs_dims[i]) != rhs.dim(rhs_dims[i])) {
      return Wrong(kind, " dimensions: lhs ", lhs_dims[i], " has ", lhs.dim(lhs_dims[i]), " elements, rhs ",
                   rhs_dims[i], " has ", rhs.dim(rhs_dims[i]));
    }
  }
  return absl::OkStatus();
}

DimVector Joined(const DimVector& a, const DimVector& b) {
  DimVector all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

absl::StatusOr<Shape> Dot(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const DotAttr* attr, AttrOf<DotAttr>(query));
  const Shape& lhs = query.operand(0);
  const Shape& rhs = query.operand(1);
  const DimVector lhs_bound = Joined(attr->lhs_batch, attr->lhs_contracting);
  const DimVector rhs_bound = Joined(attr->rhs_batch, attr->rhs_contracting);
  GW_RETURN_IF_ERROR(CheckDims(lhs_bound, lhs.rank(), "lhs batch and contracting dimensions"));
  GW_RETURN_IF_ERROR(CheckDims(rhs_bound, rhs.rank(), "rhs batch and contracting dimensions"));
  GW_RETURN_IF_ERROR(CheckPairs(lhs, attr->lhs_batch, rhs, attr->rhs_batch, "batch"));
  GW_RETURN_IF_ERROR(CheckPairs(lhs, attr->lhs_contracting, rhs, attr->rhs_contracting, "contracting"));
  DimVector dims;
  for (int64_t dim : attr->lhs_batch) dims.push_back(lhs.dim(dim));
  for (int64_t i = 0; i < lhs.rank(); ++i) {
    if (!HasDim(lhs_bound, i)) dims.push_back(lhs.dim(i));
  }
  for (int64_t i = 0; i < rhs.rank(); ++i) {
    if (!HasDim(rhs_bound, i)) dims.push_back(rhs.dim(i));
  }
  return Shape(query.wanted.IsArray() ? query.wanted.dtype() : lhs.dtype(), std::move(dims));
}

// Its dimension numbers are kept as text only, so the result is taken as given.
absl::StatusOr<Shape> RaggedDot(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckWantedArray(query));
  return query.wanted;
}

constexpr InferRow kRows[] = {
    {Opcode::kDot, Dot},
    {Opcode::kRaggedDot, RaggedDot},
};

}  // namespace

absl::Span<const InferRow> DotInferRows() { return kRows; }

}  // namespace gangway::hlo
