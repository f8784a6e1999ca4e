// Shape inference of operations that move whole arrays: broadcast, reshape, transpose, bitcasts, reverse, iota.
#include "absl/strings/str_join.h"
#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

absl::StatusOr<Shape> Broadcast(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckWantedArray(query));
  GW_ASSIGN_OR_RETURN(const DimensionsAttr* attr, AttrOf<DimensionsAttr>(query));
  const Shape& from = query.operand(0);
  const Shape& to = query.wanted;
  if (static_cast<int64_t>(attr->dims.size()) != from.rank()) {
    return Wrong("dimensions={", absl::StrJoin(attr->dims, ","), "} must list one result dimension per operand one");
  }
  GW_RETURN_IF_ERROR(CheckDims(attr->dims, to.rank(), "dimensions"));
  for (int64_t i = 0; i < from.rank(); ++i) {
    if (from.dim(i) != to.dim(attr->dims[i])) {
      return Wrong("operand dimension ", i, " (", from.dim(i), ") differs from dimension ", attr->dims[i], " of ",
                   to.ToString());
    }
  }
  return WithDType(to, from.dtype());
}

absl::Status CheckSameElementCount(const Shape& from, const Shape& to) {
  GW_RETURN_IF_ERROR(ValidateShape(from));
  GW_RETURN_IF_ERROR(ValidateShape(to));
  if (from.ElementCount() == to.ElementCount()) return absl::OkStatus();
  return Wrong(from.ElementCount(), " elements do not fill ", to.ToString());
}

absl::StatusOr<Shape> Reshape(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckWantedArray(query));
  GW_RETURN_IF_ERROR(CheckSameElementCount(query.operand(0), query.wanted));
  return WithDType(query.wanted, query.operand(0).dtype());
}

absl::StatusOr<Shape> DynamicReshape(const InferQuery& query) {
  if (query.operand_count() < 1) return Wrong("needs an operand");
  return Reshape(query);
}

absl::StatusOr<Shape> Transpose(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const DimensionsAttr* attr, AttrOf<DimensionsAttr>(query));
  const Shape& from = query.operand(0);
  GW_RETURN_IF_ERROR(CheckDims(attr->dims, from.rank(), "dimensions"));
  if (static_cast<int64_t>(attr->dims.size()) != from.rank()) return Wrong("dimensions is no permutation");
  DimVector dims;
  for (int64_t dim : attr->dims) dims.push_back(from.dim(dim));
  return Shape(from.dtype(), std::move(dims));
}

// A change of view decided by layouts, made by compilers only: bits are kept, everything else is free.
absl::StatusOr<Shape> Bitcast(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckWantedArray(query));
  return query.wanted;
}

absl::StatusOr<Shape> BitcastConvert(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckWantedArray(query));
  const Shape& from = query.operand(0);
  const DType to = query.wanted.dtype();
  if (IsComplex(from.dtype()) != IsComplex(to)) return Wrong("complex and real types do not convert into each other");
  const int64_t from_bits = BitWidth(from.dtype()), to_bits = BitWidth(to);
  DimVector dims = from.dims();
  if (from_bits > to_bits) {
    if (from_bits % to_bits != 0) return Wrong(from_bits, " bits are no multiple of ", to_bits);
    dims.push_back(from_bits / to_bits);
  } else if (from_bits < to_bits) {
    if (dims.empty() || to_bits % from_bits != 0 || dims.back() != to_bits / from_bits) {
      return Wrong("the last dimension must hold the ", to_bits, " bits of one ", DTypeName(to));
    }
    dims.pop_back();
  }
  return Shape(to, std::move(dims));
}

absl::StatusOr<Shape> Reverse(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const DimensionsAttr* attr, AttrOf<DimensionsAttr>(query));
  GW_RETURN_IF_ERROR(CheckDims(attr->dims, query.operand(0).rank(), "dimensions"));
  return query.operand(0);
}

absl::StatusOr<Shape> Iota(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckWantedArray(query));
  GW_ASSIGN_OR_RETURN(const DimensionsAttr* attr, AttrOf<DimensionsAttr>(query));
  if (attr->dims.size() != 1) return Wrong("needs one iota_dimension");
  GW_RETURN_IF_ERROR(CheckDims(attr->dims, query.wanted.rank(), "iota_dimension"));
  if (query.wanted.dtype() == DType::kPred) return Wrong("not defined for pred");
  return query.wanted;
}

absl::StatusOr<Shape> GetDimensionSize(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const DimensionAttr* attr, AttrOf<DimensionAttr>(query));
  GW_RETURN_IF_ERROR(CheckDims({attr->dimension}, query.operand(0).rank(), "dimensions"));
  return Shape::Scalar(DType::kS32);
}

absl::StatusOr<Shape> SetDimensionSize(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const DimensionAttr* attr, AttrOf<DimensionAttr>(query));
  Shape shape = query.operand(0);
  GW_RETURN_IF_ERROR(CheckDims({attr->dimension}, shape.rank(), "dimensions"));
  if (!Shape::Compatible(query.operand(1), Shape::Scalar(DType::kS32))) return Wrong("the size must be s32[]");
  std::vector<bool> dynamic = shape.dynamic_dims();
  dynamic.resize(shape.rank());
  dynamic[attr->dimension] = true;
  shape.set_dynamic_dims(std::move(dynamic));
  return shape;
}

constexpr InferRow kRows[] = {
    {Opcode::kBitcast, Bitcast},
    {Opcode::kBitcastConvert, BitcastConvert},
    {Opcode::kBroadcast, Broadcast},
    {Opcode::kDynamicReshape, DynamicReshape},
    {Opcode::kGetDimensionSize, GetDimensionSize},
    {Opcode::kIota, Iota},
    {Opcode::kReshape, Reshape},
    {Opcode::kReverse, Reverse},
    {Opcode::kSetDimensionSize, SetDimensionSize},
    {Opcode::kTranspose, Transpose},
};

}  // namespace

absl::Span<const InferRow> MovementInferRows() { return kRows; }

}  // namespace gangway::hlo
