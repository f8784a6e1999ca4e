// convolution.
#include "gangway/base/status.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/strided.h"
#include "gangway/eval/wide.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

// Strides of the operands and sizes of the loops, in the terms of the definition.
struct Geometry {
  const hlo::ConvolutionAttr& attr;
  DimVector input_dims, input_strides, kernel_strides;
  DimVector kernel_sizes;           // spatial
  int64_t group_inputs;             // input features a kernel sees
  int64_t outputs_per_group;        // output features of one feature group
  int64_t outputs_per_batch_group;  // output features of one batch group
  int64_t batch_group_size;         // output batch

  explicit Geometry(const Call& call)
      : attr(call.attr<hlo::ConvolutionAttr>()),
        input_dims(call.array(0).shape().dims()),
        input_strides(Strides(input_dims)),
        kernel_strides(Strides(call.array(1).shape().dims())) {
    const Shape& kernel = call.array(1).shape();
    for (int64_t dim : attr.kernel_spatial) kernel_sizes.push_back(kernel.dim(dim));
    group_inputs = kernel.dim(attr.kernel_input_feature);
    int64_t outputs = kernel.dim(attr.kernel_output_feature);
    outputs_per_group = outputs / attr.feature_groups;
    outputs_per_batch_group = outputs / attr.batch_groups;
    batch_group_size = input_dims[attr.input_batch] / attr.batch_groups;
  }
};

// Offset into the input of the element under kernel position `k` at output position `at` (spatial), or -1.
int64_t InputOffset(const Geometry& g, const DimVector& k, const DimVector& output_index) {
  int64_t offset = 0;
  for (size_t d = 0; d < k.size(); ++d) {
    const hlo::WindowDim& dim = g.attr.window[d];
    int64_t at = output_index[g.attr.output_spatial[d]] * dim.stride + k[d] * dim.window_dilation - dim.pad_low;
    if (at < 0 || at % dim.base_dilation != 0) return -1;
    at /= dim.base_dilation;
    int64_t input_dim = g.attr.input_spatial[d];
    if (at >= g.input_dims[input_dim]) return -1;
    offset += at * g.input_strides[input_dim];
  }
  return offset;
}

int64_t KernelOffset(const Geometry& g, const DimVector& k) {
  int64_t offset = 0;
  for (size_t d = 0; d < k.size(); ++d) {
    int64_t at = g.attr.window[d].reversal ? g.kernel_sizes[d] - 1 - k[d] : k[d];
    offset += at * g.kernel_strides[g.attr.kernel_spatial[d]];
  }
  return offset;
}

template <typename W>
W OutputElement(const Geometry& g, const std::vector<W>& input, const std::vector<W>& kernel, const DimVector& index) {
  int64_t feature = index[g.attr.output_feature];
  int64_t batch = index[g.attr.output_batch] + feature / g.outputs_per_batch_group * g.batch_group_size;
  int64_t first_input = feature / g.outputs_per_group * g.group_inputs;
  int64_t input_step = g.input_strides[g.attr.input_feature],
          kernel_step = g.kernel_strides[g.attr.kernel_input_feature];
  int64_t input_from = batch * g.input_strides[g.attr.input_batch] + first_input * input_step;
  int64_t kernel_from = feature * g.kernel_strides[g.attr.kernel_output_feature];
  DimVector k(g.kernel_sizes.size(), 0);
  W sum = 0;
  do {
    int64_t offset = InputOffset(g, k, index);
    if (offset < 0) continue;
    const W* x = input.data() + input_from + offset;
    const W* y = kernel.data() + kernel_from + KernelOffset(g, k);
    for (int64_t c = 0; c < g.group_inputs; ++c) sum += x[c * input_step] * y[c * kernel_step];
  } while (Next(g.kernel_sizes, &k));
  return sum;
}

absl::StatusOr<Value> Convolution(const Call& call) {
  Geometry g(call);
  DType dtype = call.shape().dtype();
  if (KindOf(dtype) != KindOf(call.array(0).shape().dtype()) ||
      KindOf(dtype) != KindOf(call.array(1).shape().dtype())) {
    return absl::UnimplementedError("operands and result differ in kind");
  }
  return WithWideType(dtype, [&]<typename W>() {
    std::vector<W> input = Widen<W>(call.array(0)), kernel = Widen<W>(call.array(1));
    std::vector<W> output(call.shape().ElementCount());
    DimVector index(call.shape().rank(), 0);
    bool empty = CountOf(g.kernel_sizes) == 0;
    for (size_t i = 0; i < output.size() && !empty; ++i, Next(call.shape().dims(), &index)) {
      output[i] = OutputElement<W>(g, input, kernel, index);
    }
    return Value(NarrowTo<W>(call.shape(), output));
  });
}

}  // namespace

void AddConvolution(OpTable* table) { table->Set(Opcode::kConvolution, Convolution); }

}  // namespace gangway::eval
