// Random programs: reductions, products, windows.
#include <algorithm>
#include <numeric>

#include "gangway/hlo/builder.h"
#include "tests/equivalence/random_generator.h"

namespace gangway::equivalence {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

Instruction* Generator::Reduce() {
  Instruction* x = Any();
  DimVector dims;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (Chance(50)) dims.push_back(d);
  }
  const Opcode combiner = Chance(60) ? Opcode::kAdd : Chance(50) ? Opcode::kMaximum : Opcode::kMinimum;
  const DType dtype = x->shape().dtype();
  Instruction* init = builder_->Scalar(
      dtype, combiner == Opcode::kAdd ? (Chance(70) ? 0 : 3) : Below(3) + (IsUnsigned(dtype) ? 0 : -1));
  return builder_->Reduce(x, init, dims, builder_->ScalarComputation(combiner, dtype));
}

Instruction* Generator::Dot() {
  Instruction* x = Tamed(Any());
  if (x->shape().rank() == 0) return nullptr;
  // The right operand shares some dimensions of the left one.
  hlo::DotAttr attr;
  DimVector dims;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    const int role = Below(3);
    if (role == 0) continue;
    (role == 1 ? attr.lhs_batch : attr.lhs_contracting).push_back(d);
    (role == 1 ? attr.rhs_batch : attr.rhs_contracting).push_back(static_cast<int64_t>(dims.size()));
    dims.push_back(x->shape().dim(d));
  }
  if (dims.size() < 3) dims.push_back(RandomExtent());
  Instruction* y = Tamed(Like(Shape(x->shape().dtype(), dims)));
  if (Chance(30)) y = builder_->Add(Opcode::kAdd, {y, builder_->Iota(y->shape(), 0)});
  return builder_->Dot(x, y, attr, x->shape().dtype());
}

hlo::WindowDim Generator::RandomWindow(int64_t extent, bool dilate_base) {
  hlo::WindowDim window;
  window.size = 1 + Below(3);
  window.stride = 1 + Below(2);
  window.pad_low = Below(3);
  window.pad_high = Below(3);
  window.window_dilation = Chance(80) ? 1 : 2;
  if (dilate_base && Chance(20)) window.base_dilation = 2;
  const int64_t base = (extent - 1) * window.base_dilation + 1 + window.pad_low + window.pad_high;
  if (base < (window.size - 1) * window.window_dilation + 1) return {};
  return window;
}

// Layout bf0, 0io or any other order of the input; one or two spatial dimensions.
Instruction* Generator::Convolution() {
  const int64_t spatial = 1 + Below(2);
  hlo::ConvolutionAttr attr;
  DimVector input(spatial + 2), kernel(spatial + 2);
  const DimVector in = Permutation(spatial + 2), ker = Permutation(spatial + 2), out = Permutation(spatial + 2);
  attr.input_batch = in[0], attr.input_feature = in[1];
  attr.kernel_input_feature = ker[0], attr.kernel_output_feature = ker[1];
  attr.output_batch = out[0], attr.output_feature = out[1];
  const int64_t groups = Chance(70) ? 1 : 2, kind = Below(2);
  (kind == 0 ? attr.feature_groups : attr.batch_groups) = groups;
  input[in[0]] = (1 + Below(4)) * attr.batch_groups;
  kernel[ker[0]] = 1 + Below(4);
  input[in[1]] = kernel[ker[0]] * attr.feature_groups;
  kernel[ker[1]] = (1 + Below(4)) * groups;
  for (int64_t d = 0; d < spatial; ++d) {
    input[in[d + 2]] = RandomExtent();
    attr.window.push_back(RandomWindow(input[in[d + 2]], true));
    kernel[ker[d + 2]] = attr.window.back().size;
    attr.input_spatial.push_back(in[d + 2]);
    attr.kernel_spatial.push_back(ker[d + 2]);
    attr.output_spatial.push_back(out[d + 2]);
  }
  Instruction* x = Tamed(Filled(Shape(DType::kF32, input)));
  return builder_->Add(Opcode::kConvolution, {x, Tamed(Filled(Shape(DType::kF32, kernel)))}, attr);
}

Instruction* Generator::ReduceWindow() {
  Instruction* x = Any();
  if (x->shape().rank() == 0) return nullptr;
  hlo::WindowAttr attr;
  for (int64_t extent : x->shape().dims())
    attr.window.push_back(Chance(40) ? hlo::WindowDim{} : RandomWindow(extent, false));
  const DType dtype = x->shape().dtype();
  const Opcode combiner = Chance(50) ? Opcode::kAdd : Opcode::kMaximum;
  return builder_->Add(Opcode::kReduceWindow,
                       {x, builder_->Scalar(dtype, combiner == Opcode::kAdd || IsUnsigned(dtype) ? 0 : -100)}, attr,
                       {builder_->ScalarComputation(combiner, dtype)});
}

// Sums or maxima of everything up to each element, or from it on.
Instruction* Generator::Cumulative() {
  Instruction* x = AnyOfRank(1);
  if (x == nullptr) return nullptr;
  const int64_t dim = Below(x->shape().rank()), extent = x->shape().dim(dim);
  hlo::WindowAttr attr;
  attr.window.resize(x->shape().rank());
  attr.window[dim].size = extent;
  (Chance(70) ? attr.window[dim].pad_low : attr.window[dim].pad_high) = extent - 1;
  const DType dtype = x->shape().dtype();
  const Opcode combiner = Chance(70) ? Opcode::kAdd : Opcode::kMaximum;
  const double identity = combiner == Opcode::kAdd || IsUnsigned(dtype) ? 0 : -100000;
  return builder_->Add(Opcode::kReduceWindow, {x, builder_->Scalar(dtype, identity)}, attr,
                       {builder_->ScalarComputation(combiner, dtype)});
}

// The gradient of max-pooling.
Instruction* Generator::SelectAndScatter() {
  Instruction* x = AnyOfRank(1);
  if (x == nullptr) return nullptr;
  hlo::WindowAttr attr;
  DimVector pooled;
  for (int64_t extent : x->shape().dims()) {
    hlo::WindowDim window;
    if (extent >= 2 && Chance(60)) {
      window.size = 2;
      window.stride = 1 + Below(2);
      window.pad_low = Below(2);
    }
    pooled.push_back((extent + window.pad_low - window.size) / window.stride + 1);
    attr.window.push_back(window);
  }
  const DType dtype = x->shape().dtype();
  hlo::Computation* select = module_->AddComputation("ge");
  Builder builder(select);
  Instruction* a = builder.Parameter(0, Shape::Scalar(dtype), "a");
  Instruction* b = builder.Parameter(1, Shape::Scalar(dtype), "b");
  select->set_root(builder.Compare(hlo::ComparisonDirection::kGe, a, b));
  return builder_->Add(Opcode::kSelectAndScatter, {x, Filled(Shape(dtype, pooled)), builder_->Scalar(dtype, 0)}, attr,
                       {select, builder_->ScalarComputation(Opcode::kAdd, dtype)});
}

}  // namespace gangway::equivalence
