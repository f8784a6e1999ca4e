// Shape inference of operations that take parts of arrays or put them together.
#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

absl::StatusOr<Shape> Slice(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const SliceAttr* attr, AttrOf<SliceAttr>(query));
  Shape shape = query.operand(0);
  const size_t rank = shape.rank();
  if (attr->starts.size() != rank || attr->limits.size() != rank || attr->strides.size() != rank) {
    return Wrong("slice lists ", attr->starts.size(), " dimensions, the operand has ", rank);
  }
  for (size_t i = 0; i < rank; ++i) {
    const int64_t start = attr->starts[i], limit = attr->limits[i], stride = attr->strides[i];
    if (start < 0 || start > limit || limit > shape.dim(i) || stride < 1) {
      return Wrong("dimension ", i, ": [", start, ":", limit, ":", stride, "] does not fit ", shape.dim(i));
    }
    shape.set_dim(i, limit == start ? 0 : (limit - start - 1) / stride + 1);
  }
  return shape;
}

absl::StatusOr<Shape> Pad(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const PadAttr* attr, AttrOf<PadAttr>(query));
  Shape shape = query.operand(0);
  if (!Shape::Compatible(query.operand(1), Shape::Scalar(shape.dtype()))) {
    return Wrong("the padding value must be ", Shape::Scalar(shape.dtype()).ToString());
  }
  if (static_cast<int64_t>(attr->dims.size()) != shape.rank()) {
    return Wrong("padding lists ", attr->dims.size(), " dimensions, the operand has ", shape.rank());
  }
  for (int64_t i = 0; i < shape.rank(); ++i) {
    const PadDim& pad = attr->dims[i];
    if (pad.interior < 0) return Wrong("dimension ", i, ": interior padding ", pad.interior, " is negative");
    const __int128 gaps = shape.dim(i) > 0 ? shape.dim(i) - 1 : 0;
    const __int128 extent = gaps * pad.interior + shape.dim(i) + pad.low + pad.high;
    if (extent < 0) return Wrong("dimension ", i, ": negative padding takes more than ", shape.dim(i), " elements");
    if (extent > (int64_t{1} << 61)) return Wrong("dimension ", i, " of the result is too large");
    shape.set_dim(i, static_cast<int64_t>(extent));
  }
  return shape;
}

absl::StatusOr<Shape> Concatenate(const InferQuery& query) {
  if (query.operand_count() < 1) return Wrong("needs an operand");
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const DimensionsAttr* attr, AttrOf<DimensionsAttr>(query));
  if (attr->dims.size() != 1) return Wrong("needs one dimension");
  const int64_t dim = attr->dims[0];
  Shape shape = query.operand(0);
  GW_RETURN_IF_ERROR(CheckDims(attr->dims, shape.rank(), "dimensions"));
  for (int64_t i = 1; i < query.operand_count(); ++i) {
    Shape part = query.operand(i);
    if (part.rank() != shape.rank()) return Wrong("operand ", i, " has another rank");
    int64_t extent;
    if (__builtin_add_overflow(shape.dim(dim), part.dim(dim), &extent)) return Wrong("the result is too large");
    part.set_dim(dim, shape.dim(dim));
    if (!Shape::Compatible(part, shape)) return Wrong("operand ", i, " differs in more than dimension ", dim);
    shape.set_dim(dim, extent);
  }
  return shape;
}

// Start indices: one integer scalar per dimension (or one rank-1 array of all of them, the old form).
absl::Status CheckStarts(const InferQuery& query, int64_t first, int64_t rank) {
  const int64_t count = query.operand_count() - first;
  if (count == 1 && query.operand(first).rank() == 1 && query.operand(first).dim(0) == rank &&
      IsInteger(query.operand(first).dtype())) {
    return absl::OkStatus();
  }
  if (count != rank) return Wrong("needs ", rank, " start indices, has ", count);
  for (int64_t i = first; i < query.operand_count(); ++i) {
    const Shape& index = query.operand(i);
    if (index.rank() != 0 || !IsInteger(index.dtype())) {
      return Wrong("start index ", i - first, " is no integer scalar: ", index.ToString());
    }
    if (index.dtype() != query.operand(first).dtype()) return Wrong("start indices have different types");
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> DynamicSlice(const InferQuery& query) {
  if (query.operand_count() < 1) return Wrong("needs an operand");
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const DynamicSliceAttr* attr, AttrOf<DynamicSliceAttr>(query));
  const Shape& shape = query.operand(0);
  GW_RETURN_IF_ERROR(CheckStarts(query, 1, shape.rank()));
  if (static_cast<int64_t>(attr->sizes.size()) != shape.rank()) return Wrong("needs one slice size per dimension");
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (attr->sizes[i] < 0 || attr->sizes[i] > shape.dim(i)) {
      return Wrong("dimension ", i, ": slice size ", attr->sizes[i], " is not in [0, ", shape.dim(i), "]");
    }
  }
  return Shape(shape.dtype(), attr->sizes);
}

absl::StatusOr<Shape> DynamicUpdateSlice(const InferQuery& query) {
  if (query.operand_count() < 2) return Wrong("needs an operand and an update");
  GW_RETURN_IF_ERROR(CheckArrays(query));
  const Shape& shape = query.operand(0);
  const Shape& update = query.operand(1);
  GW_RETURN_IF_ERROR(CheckStarts(query, 2, shape.rank()));
  if (update.dtype() != shape.dtype()) return Wrong("element types of operand and update differ");
  if (update.rank() != shape.rank()) return Wrong("ranks of operand and update differ");
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (update.dim(i) > shape.dim(i)) {
      return Wrong("dimension ", i, ": update of ", update.dim(i), " is larger than the operand's ", shape.dim(i));
    }
  }
  return shape;
}

constexpr InferRow kRows[] = {
    {Opcode::kConcatenate, Concatenate},
    {Opcode::kDynamicSlice, DynamicSlice},
    {Opcode::kDynamicUpdateSlice, DynamicUpdateSlice},
    {Opcode::kPad, Pad},
    {Opcode::kSlice, Slice},
};

}  // namespace

absl::Span<const InferRow> SliceInferRows() { return kRows; }

}  // namespace gangway::hlo
