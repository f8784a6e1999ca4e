// Shape inference of gather and scatter.
#include <algorithm>

#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

// Dimensions of the indices without the index vector's; index_vector_dim may be the rank (then each index is a scalar).
absl::StatusOr<DimVector> BatchDims(const Shape& indices, int64_t index_vector_dim, size_t index_count) {
  if (!IsInteger(indices.dtype())) return Wrong("indices must be integers");
  if (index_vector_dim < 0 || index_vector_dim > indices.rank()) {
    return Wrong("index_vector_dim=", index_vector_dim, " is not in [0, ", indices.rank(), "]");
  }
  const int64_t length = index_vector_dim == indices.rank() ? 1 : indices.dim(index_vector_dim);
  if (length != static_cast<int64_t>(index_count)) {
    return Wrong("index vectors hold ", length, " entries, the index map names ", index_count);
  }
  DimVector dims = indices.dims();
  if (index_vector_dim < indices.rank()) dims.erase(dims.begin() + index_vector_dim);
  return dims;
}

absl::Status CheckIncreasing(const DimVector& dims, int64_t rank, absl::string_view list) {
  GW_RETURN_IF_ERROR(CheckDims(dims, rank, list));
  if (!std::is_sorted(dims.begin(), dims.end())) return Wrong(list, " must be increasing");
  return absl::OkStatus();
}

// Operand dimensions that are no window dimension: dropped ones and batching ones, which pair with index dimensions.
absl::Status CheckBatching(const Shape& operand, const Shape& indices, const DimVector& dropped,
                           const DimVector& operand_batch, const DimVector& indices_batch, int64_t index_vector_dim) {
  DimVector both = dropped;
  both.insert(both.end(), operand_batch.begin(), operand_batch.end());
  GW_RETURN_IF_ERROR(CheckDims(both, operand.rank(), "collapsed and batching dimensions of the operand"));
  GW_RETURN_IF_ERROR(CheckDims(indices_batch, indices.rank(), "batching dimensions of the indices"));
  if (operand_batch.size() != indices_batch.size()) return Wrong("batching dimensions do not pair up");
  for (size_t i = 0; i < operand_batch.size(); ++i) {
    if (indices_batch[i] == index_vector_dim) return Wrong("index_vector_dim cannot be a batching dimension");
    if (operand.dim(operand_batch[i]) != indices.dim(indices_batch[i])) {
      return Wrong("batching dimensions ", operand_batch[i], " and ", indices_batch[i], " have different sizes");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSliceSizes(const GatherAttr& attr, const Shape& operand) {
  if (static_cast<int64_t>(attr.slice_sizes.size()) != operand.rank()) return Wrong("slice_sizes has another rank");
  for (int64_t i = 0; i < operand.rank(); ++i) {
    const int64_t size = attr.slice_sizes[i];
    if (size < 0 || size > operand.dim(i)) {
      return Wrong("slice_sizes: ", size, " in dimension ", i, " is not in [0, ", operand.dim(i), "]");
    }
    const bool dropped = HasDim(attr.collapsed_slice_dims, i) || HasDim(attr.operand_batching_dims, i);
    if (dropped && size > 1) return Wrong("slice_sizes: ", size, " in collapsed dimension ", i);
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> Gather(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const GatherAttr* attr, AttrOf<GatherAttr>(query));
  const Shape& operand = query.operand(0);
  const Shape& indices = query.operand(1);
  GW_ASSIGN_OR_RETURN(DimVector batch, BatchDims(indices, attr->index_vector_dim, attr->start_index_map.size()));
  GW_RETURN_IF_ERROR(CheckDims(attr->start_index_map, operand.rank(), "start_index_map"));
  GW_RETURN_IF_ERROR(CheckBatching(operand, indices, attr->collapsed_slice_dims, attr->operand_batching_dims,
                                   attr->start_indices_batching_dims, attr->index_vector_dim));
  GW_RETURN_IF_ERROR(CheckSliceSizes(*attr, operand));
  DimVector window;
  for (int64_t i = 0; i < operand.rank(); ++i) {
    const bool dropped = HasDim(attr->collapsed_slice_dims, i) || HasDim(attr->operand_batching_dims, i);
    if (!dropped) window.push_back(attr->slice_sizes[i]);
  }
  if (attr->offset_dims.size() != window.size()) {
    return Wrong("offset_dims names ", attr->offset_dims.size(), " dimensions, slices have ", window.size());
  }
  const int64_t rank = static_cast<int64_t>(window.size() + batch.size());
  GW_RETURN_IF_ERROR(CheckIncreasing(attr->offset_dims, rank, "offset_dims"));
  DimVector dims;
  size_t next_window = 0, next_batch = 0;
  for (int64_t i = 0; i < rank; ++i) {
    dims.push_back(HasDim(attr->offset_dims, i) ? window[next_window++] : batch[next_batch++]);
  }
  return Shape(operand.dtype(), std::move(dims));
}

// Updates are batch dimensions of the indices with windows of the operand, which may be smaller than it.
absl::Status CheckUpdate(const ScatterAttr& attr, const Shape& operand, const DimVector& batch, const Shape& update) {
  DimVector bounds;
  for (int64_t i = 0; i < operand.rank(); ++i) {
    const bool dropped = HasDim(attr.inserted_window_dims, i) || HasDim(attr.input_batching_dims, i);
    if (!dropped) bounds.push_back(operand.dim(i));
  }
  if (attr.update_window_dims.size() != bounds.size()) {
    return Wrong("update_window_dims names ", attr.update_window_dims.size(), " dimensions, windows have ",
                 bounds.size());
  }
  if (update.rank() != static_cast<int64_t>(bounds.size() + batch.size())) {
    return Wrong("updates have rank ", update.rank(), ", windows and indices make ", bounds.size() + batch.size());
  }
  GW_RETURN_IF_ERROR(CheckIncreasing(attr.update_window_dims, update.rank(), "update_window_dims"));
  size_t next_window = 0, next_batch = 0;
  for (int64_t i = 0; i < update.rank(); ++i) {
    if (HasDim(attr.update_window_dims, i)) {
      const int64_t bound = bounds[next_window++];
      if (update.dim(i) > bound) return Wrong("update dimension ", i, " exceeds the operand's ", bound);
    } else if (update.dim(i) != batch[next_batch++]) {
      return Wrong("update dimension ", i, " (", update.dim(i), ") differs from the indices' ", batch[next_batch - 1]);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> Scatter(const InferQuery& query) {
  if (query.operand_count() < 3 || query.operand_count() % 2 != 1) {
    return Wrong("needs operands, indices and as many updates");
  }
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckCalledCount(query, 1));
  GW_ASSIGN_OR_RETURN(const ScatterAttr* attr, AttrOf<ScatterAttr>(query));
  const int64_t count = query.operand_count() / 2;
  const Shape& operand = query.operand(0);
  const Shape& indices = query.operand(count);
  GW_ASSIGN_OR_RETURN(DimVector batch,
                      BatchDims(indices, attr->index_vector_dim, attr->scatter_dims_to_operand_dims.size()));
  GW_RETURN_IF_ERROR(CheckDims(attr->scatter_dims_to_operand_dims, operand.rank(), "scatter_dims_to_operand_dims"));
  GW_RETURN_IF_ERROR(CheckBatching(operand, indices, attr->inserted_window_dims, attr->input_batching_dims,
                                   attr->scatter_indices_batching_dims, attr->index_vector_dim));
  std::vector<Shape> shapes, scalars;
  for (int64_t i = 0; i < count; ++i) {
    const Shape& value = query.operand(i);
    const Shape& update = query.operand(count + 1 + i);
    if (!SameDims(value, operand)) return Wrong("operand ", i, " has other dimensions than operand 0");
    if (update.dtype() != value.dtype()) return Wrong("update ", i, " has another element type than its operand");
    GW_RETURN_IF_ERROR_WITH(CheckUpdate(*attr, operand, batch, update), absl::StrCat("update ", i));
    shapes.push_back(value);
    scalars.push_back(Shape::Scalar(value.dtype()));
  }
  std::vector<Shape> parameters = scalars;
  parameters.insert(parameters.end(), scalars.begin(), scalars.end());
  GW_RETURN_IF_ERROR(CheckParameters(*query.called[0], parameters, "to_apply"));
  GW_ASSIGN_OR_RETURN(Shape result, ResultOf(*query.called[0]));
  if (!Shape::Compatible(result, SelfOrTuple(scalars))) return Wrong("to_apply gives ", result.ToString());
  return SelfOrTuple(std::move(shapes));
}

constexpr InferRow kRows[] = {
    {Opcode::kGather, Gather},
    {Opcode::kScatter, Scatter},
};

}  // namespace

absl::Span<const InferRow> GatherInferRows() { return kRows; }

}  // namespace gangway::hlo
