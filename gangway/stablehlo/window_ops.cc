// Convolution and operations over windows.
#include <limits>
#include <utility>

#include "gangway/stablehlo/dot_precision.h"
#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::Opcode;
using Rows = std::vector<std::vector<int64_t>>;

absl::Status CheckLength(absl::string_view attribute, size_t length, size_t expected) {
  if (length == expected) return absl::OkStatus();
  return OpContext::Error(absl::StrCat("attribute ", attribute, ": ", length, " entries, expected ", expected));
}

// Low and high padding of each dimension.
absl::Status SetPadding(absl::string_view attribute, const Rows& padding, hlo::Window& window) {
  GW_RETURN_IF_ERROR(CheckLength(attribute, padding.size(), window.size()));
  for (size_t i = 0; i < window.size(); ++i) {
    GW_RETURN_IF_ERROR(CheckLength(attribute, padding[i].size(), 2));
    window[i].pad_low = padding[i][0];
    window[i].pad_high = padding[i][1];
  }
  return absl::OkStatus();
}

// Reads one number a dimension into a field of the window.
absl::Status SetField(const OpView& op, absl::string_view attribute, int64_t hlo::WindowDim::*field,
                      hlo::Window& window) {
  GW_ASSIGN_OR_RETURN(DimVector values, op.Ints(attribute));
  GW_RETURN_IF_ERROR(CheckLength(attribute, values.size(), window.size()));
  for (size_t i = 0; i < values.size(); ++i) window[i].*field = values[i];
  return absl::OkStatus();
}

// Padding that takes away more than there is leaves nothing, as does padding that takes away all; devices' compilers
// abort over the former.
void LeaveNothingAtLeast(int64_t extent, hlo::WindowDim& window) {
  if (extent < 0 || window.base_dilation < 1) return;  // refused where the shape is inferred
  const __int128 dilated = extent > 0 ? static_cast<__int128>(extent - 1) * window.base_dilation + 1 : 0;
  if (dilated + window.pad_low + window.pad_high >= 0 || dilated > std::numeric_limits<int64_t>::max()) return;
  window.pad_low = -static_cast<int64_t>(dilated);
  window.pad_high = 0;
}

void LeaveNothingAtLeast(const Shape& operand, hlo::Window& window) {
  for (size_t i = 0; i < window.size(); ++i) LeaveNothingAtLeast(operand.dim(static_cast<int64_t>(i)), window[i]);
}

absl::Status ReadConvolutionWindow(const OpView& op, const Shape& kernel, const Rows& padding,
                                   hlo::ConvolutionAttr& attr) {
  hlo::Window& window = attr.window;
  window.resize(attr.kernel_spatial.size());
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t dim = attr.kernel_spatial[i];
    if (dim < 0 || dim >= kernel.rank()) {
      return OpContext::Error(absl::StrCat("attribute kernel_spatial_dimensions: dimension ", dim));
    }
    window[i].size = kernel.dim(dim);
  }
  GW_RETURN_IF_ERROR(SetField(op, "window_strides", &hlo::WindowDim::stride, window));
  GW_RETURN_IF_ERROR(SetField(op, "lhs_dilation", &hlo::WindowDim::base_dilation, window));
  GW_RETURN_IF_ERROR(SetField(op, "rhs_dilation", &hlo::WindowDim::window_dilation, window));
  GW_RETURN_IF_ERROR(SetPadding("padding", padding, window));
  GW_ASSIGN_OR_RETURN(DimVector reversal, op.Ints("window_reversal"));
  GW_RETURN_IF_ERROR(CheckLength("window_reversal", reversal.size(), window.size()));
  for (size_t i = 0; i < window.size(); ++i) window[i].reversal = reversal[i] != 0;
  return absl::OkStatus();
}

absl::Status ConvolutionWithPadding(OpContext& context, const Rows& padding) {
  const OpView& op = context.op();
  hlo::ConvolutionAttr attr;
  GW_ASSIGN_OR_RETURN(attr.input_batch, op.Int("input_batch_dimension"));
  GW_ASSIGN_OR_RETURN(attr.input_feature, op.Int("input_feature_dimension"));
  GW_ASSIGN_OR_RETURN(attr.input_spatial, op.Ints("input_spatial_dimensions"));
  GW_ASSIGN_OR_RETURN(attr.kernel_input_feature, op.Int("kernel_input_feature_dimension"));
  GW_ASSIGN_OR_RETURN(attr.kernel_output_feature, op.Int("kernel_output_feature_dimension"));
  GW_ASSIGN_OR_RETURN(attr.kernel_spatial, op.Ints("kernel_spatial_dimensions"));
  GW_ASSIGN_OR_RETURN(attr.output_batch, op.Int("output_batch_dimension"));
  GW_ASSIGN_OR_RETURN(attr.output_feature, op.Int("output_feature_dimension"));
  GW_ASSIGN_OR_RETURN(attr.output_spatial, op.Ints("output_spatial_dimensions"));
  GW_ASSIGN_OR_RETURN(attr.feature_groups, op.Int("feature_group_count"));
  GW_ASSIGN_OR_RETURN(attr.batch_groups, op.Int("batch_group_count"));
  GW_ASSIGN_OR_RETURN(attr.precision.operands, ReadPrecisions(op));
  GW_RETURN_IF_ERROR(ReadConvolutionWindow(op, context.operand(1)->shape(), padding, attr));
  const Shape& input = context.operand(0)->shape();
  for (size_t i = 0; i < attr.window.size() && i < attr.input_spatial.size(); ++i) {
    const int64_t dim = attr.input_spatial[i];
    if (dim >= 0 && dim < input.rank()) LeaveNothingAtLeast(input.dim(dim), attr.window[i]);
  }
  return context.FinishWith(Opcode::kConvolution, {context.operand(0), context.operand(1)}, std::move(attr));
}

absl::Status Convolution(OpContext& context) {
  GW_ASSIGN_OR_RETURN(Rows padding, context.op().IntRows("padding"));
  return ConvolutionWithPadding(context, padding);
}

// The padding is an operand, which must be a constant.
absl::Status DynamicConvolution(OpContext& context) {
  GW_ASSIGN_OR_RETURN(DimVector flat, context.ConstantOperand(2));
  Rows padding;
  for (size_t i = 0; i + 1 < flat.size(); i += 2) padding.push_back({flat[i], flat[i + 1]});
  return ConvolutionWithPadding(context, padding);
}

absl::Status ReduceWindow(OpContext& context) {
  const OpView& op = context.op();
  const size_t count = context.operands().size() / 2;
  if (count == 0 || context.operands().size() % 2 != 0 || context.result_shapes().size() != count) {
    return OpContext::Error("inputs, init values and results do not match in number");
  }
  hlo::Window window(context.operand(0)->shape().rank());
  GW_RETURN_IF_ERROR(SetField(op, "window_dimensions", &hlo::WindowDim::size, window));
  GW_RETURN_IF_ERROR(SetField(op, "window_strides", &hlo::WindowDim::stride, window));
  GW_RETURN_IF_ERROR(SetField(op, "base_dilations", &hlo::WindowDim::base_dilation, window));
  GW_RETURN_IF_ERROR(SetField(op, "window_dilations", &hlo::WindowDim::window_dilation, window));
  GW_ASSIGN_OR_RETURN(Rows padding, op.IntRows("padding"));
  GW_RETURN_IF_ERROR(SetPadding("padding", padding, window));
  LeaveNothingAtLeast(context.operand(0)->shape(), window);
  GW_ASSIGN_OR_RETURN(hlo::Computation * body, context.PureRegion(0));
  return context.FinishWith(Opcode::kReduceWindow, context.operands(), hlo::WindowAttr{std::move(window)}, {body});
}

absl::Status SelectAndScatter(OpContext& context) {
  const OpView& op = context.op();
  hlo::Window window(context.operand(0)->shape().rank());
  GW_RETURN_IF_ERROR(SetField(op, "window_dimensions", &hlo::WindowDim::size, window));
  GW_RETURN_IF_ERROR(SetField(op, "window_strides", &hlo::WindowDim::stride, window));
  GW_ASSIGN_OR_RETURN(Rows padding, op.IntRows("padding"));
  GW_RETURN_IF_ERROR(SetPadding("padding", padding, window));
  LeaveNothingAtLeast(context.operand(0)->shape(), window);
  GW_ASSIGN_OR_RETURN(hlo::Computation * select, context.PureRegion(0));
  GW_ASSIGN_OR_RETURN(hlo::Computation * scatter, context.PureRegion(1));
  return context.FinishWith(Opcode::kSelectAndScatter, context.operands(), hlo::WindowAttr{std::move(window)},
                            {select, scatter});
}

}  // namespace

void AddWindowOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.convolution_v1", 2, 1, 0, Convolution},
           OpRow{"vhlo.dynamic_conv_v1", 3, 1, 0, DynamicConvolution},
           OpRow{"vhlo.dynamic_conv_v2", 3, 1, 0, DynamicConvolution},
           OpRow{"vhlo.reduce_window_v1", kAny, kAny, 1, ReduceWindow},
           OpRow{"vhlo.select_and_scatter_v1", 3, 1, 2, SelectAndScatter},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo
