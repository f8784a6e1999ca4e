// Shape inference of operations with a window: convolution, reduce-window, select-and-scatter.
#include <algorithm>

#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

// Positions of a window over one dimension.
absl::StatusOr<int64_t> WindowPositions(int64_t extent, const WindowDim& window) {
  if (window.size < 1 || window.stride < 1 || window.window_dilation < 1 || window.base_dilation < 1) {
    return Wrong("window size, stride and dilations must be positive");
  }
  const __int128 dilated = extent > 0 ? static_cast<__int128>(extent - 1) * window.base_dilation + 1 : 0;
  const __int128 padded = dilated + window.pad_low + window.pad_high;
  const __int128 reach = static_cast<__int128>(window.size - 1) * window.window_dilation + 1;
  if (padded < reach) return 0;
  const __int128 positions = (padded - reach) / window.stride + 1;
  if (positions > (int64_t{1} << 61)) return Wrong("the result is too large");
  return static_cast<int64_t>(positions);
}

absl::StatusOr<Shape> Windowed(Shape shape, const Window& window) {
  if (static_cast<int64_t>(window.size()) != shape.rank()) {
    return Wrong("the window has ", window.size(), " dimensions, the operand ", shape.rank());
  }
  for (int64_t i = 0; i < shape.rank(); ++i) {
    GW_ASSIGN_OR_RETURN_WITH(int64_t extent, WindowPositions(shape.dim(i), window[i]),
                             absl::StrCat("window dimension ", i));
    shape.set_dim(i, extent);
  }
  return shape;
}

// The dimension numbers name every dimension once.
absl::Status CheckAssigned(int64_t a, int64_t b, const DimVector& spatial, int64_t rank, absl::string_view of) {
  DimVector all = spatial;
  all.push_back(a);
  all.push_back(b);
  if (static_cast<int64_t>(all.size()) != rank) return Wrong(of, " has rank ", rank, ", dim_labels name ", all.size());
  return CheckDims(all, rank, absl::StrCat("dim_labels of ", of));
}

absl::Status CheckFeatures(const ConvolutionAttr& attr, const Shape& input, const Shape& kernel) {
  const int64_t features = input.dim(attr.input_feature), batch = input.dim(attr.input_batch);
  const int64_t kernel_in = kernel.dim(attr.kernel_input_feature), kernel_out = kernel.dim(attr.kernel_output_feature);
  if (attr.feature_groups < 1 || attr.batch_groups < 1) return Wrong("group counts must be positive");
  if (attr.feature_groups > 1 && attr.batch_groups > 1) return Wrong("only one of the group counts may exceed 1");
  if (features % attr.feature_groups != 0 || features / attr.feature_groups != kernel_in) {
    return Wrong("input has ", features, " features in ", attr.feature_groups, " groups, the kernel takes ", kernel_in);
  }
  if (kernel_out % attr.feature_groups != 0) return Wrong("feature_group_count does not divide the output features");
  if (kernel_out % attr.batch_groups != 0) return Wrong("batch_group_count does not divide the output features");
  if (batch % attr.batch_groups != 0) return Wrong("batch_group_count does not divide the batch");
  return absl::OkStatus();
}

absl::StatusOr<Shape> Convolution(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_ASSIGN_OR_RETURN(const ConvolutionAttr* attr, AttrOf<ConvolutionAttr>(query));
  const Shape& input = query.operand(0);
  const Shape& kernel = query.operand(1);
  const size_t spatial = attr->window.size();
  if (attr->input_spatial.size() != spatial || attr->kernel_spatial.size() != spatial ||
      attr->output_spatial.size() != spatial) {
    return Wrong("window and dim_labels have different numbers of spatial dimensions");
  }
  GW_RETURN_IF_ERROR(CheckAssigned(attr->input_batch, attr->input_feature, attr->input_spatial, input.rank(), "input"));
  GW_RETURN_IF_ERROR(CheckAssigned(attr->kernel_input_feature, attr->kernel_output_feature, attr->kernel_spatial,
                                   kernel.rank(), "kernel"));
  GW_RETURN_IF_ERROR(CheckAssigned(attr->output_batch, attr->output_feature, attr->output_spatial,
                                   static_cast<int64_t>(spatial) + 2, "output"));
  GW_RETURN_IF_ERROR(CheckFeatures(*attr, input, kernel));
  DimVector dims(spatial + 2);
  dims[attr->output_batch] = input.dim(attr->input_batch) / attr->batch_groups;
  dims[attr->output_feature] = kernel.dim(attr->kernel_output_feature);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t kernel_extent = kernel.dim(attr->kernel_spatial[i]);
    if (attr->window[i].size != kernel_extent) {
      return Wrong("window dimension ", i, " has size ", attr->window[i].size, ", the kernel ", kernel_extent);
    }
    // A kernel without elements has no window; the result is then what XLA says, nothing.
    GW_ASSIGN_OR_RETURN_WITH(dims[attr->output_spatial[i]],
                             WindowPositions(input.dim(attr->input_spatial[i]), attr->window[i]),
                             absl::StrCat("window dimension ", i));
  }
  return Shape(query.wanted.IsArray() ? query.wanted.dtype() : input.dtype(), std::move(dims));
}

absl::StatusOr<Shape> ReduceWindow(const InferQuery& query) {
  if (query.operand_count() < 2 || query.operand_count() % 2 != 0) return Wrong("needs as many values as inits");
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckCalledCount(query, 1));
  GW_ASSIGN_OR_RETURN(const WindowAttr* attr, AttrOf<WindowAttr>(query));
  const int64_t count = query.operand_count() / 2;
  GW_ASSIGN_OR_RETURN(Shape result, ResultOf(*query.called[0]));
  std::vector<Shape> combined = TupleOrSelf(result);
  if (static_cast<int64_t>(combined.size()) != count) {
    return Wrong("to_apply gives ", combined.size(), " values for ", count);
  }
  GW_ASSIGN_OR_RETURN(Shape windowed, Windowed(query.operand(0), attr->window));
  std::vector<Shape> shapes;
  for (int64_t i = 0; i < count; ++i) {
    if (!SameDims(query.operand(i), query.operand(0))) return Wrong("operand ", i, " has other dimensions");
    if (query.operand(count + i).rank() != 0) return Wrong("init value ", i, " is no scalar");
    shapes.push_back(WithDType(windowed, combined[i].dtype()));
  }
  return SelfOrTuple(std::move(shapes));
}

absl::StatusOr<Shape> SelectAndScatter(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckArrays(query));
  GW_RETURN_IF_ERROR(CheckCalledCount(query, 2));
  GW_ASSIGN_OR_RETURN(const WindowAttr* attr, AttrOf<WindowAttr>(query));
  const Shape& operand = query.operand(0);
  const Shape& source = query.operand(1);
  const Shape scalar = Shape::Scalar(operand.dtype());
  if (!Shape::Compatible(query.operand(2), scalar)) return Wrong("the init value must be ", scalar.ToString());
  GW_RETURN_IF_ERROR(CheckParameters(*query.called[0], {scalar, scalar}, "select"));
  GW_ASSIGN_OR_RETURN(Shape windowed, Windowed(operand, attr->window));
  if (!Shape::Compatible(windowed, source)) {
    return Wrong("the window makes ", windowed.ToString(), ", the source is ", source.ToString());
  }
  return operand;
}

constexpr InferRow kRows[] = {
    {Opcode::kConvolution, Convolution},
    {Opcode::kReduceWindow, ReduceWindow},
    {Opcode::kSelectAndScatter, SelectAndScatter},
};

}  // namespace

absl::Span<const InferRow> WindowInferRows() { return kRows; }

}  // namespace gangway::hlo
