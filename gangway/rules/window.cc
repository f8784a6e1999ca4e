// Convolution and window reductions: along a window a shard of the result needs a halo of its neighbours' operands.
#include <algorithm>

#include "gangway/rules/family.h"

namespace gangway::rules {
namespace {

// The window is one element and moves over all of them: the dimension passes through.
bool IsTrivial(const hlo::WindowDim& w) {
  return w.size == 1 && w.stride == 1 && w.pad_low == 0 && w.pad_high == 0 && w.base_dilation == 1;
}

// The window is the whole operand once: what a matrix product does with a contracting dimension.
bool CoversAll(const hlo::WindowDim& w, int64_t extent, int64_t out) {
  return out == 1 && w.size == extent && w.pad_low == 0 && w.pad_high == 0 && w.base_dilation == 1 &&
         w.window_dilation == 1 && !w.reversal;
}

void AddWindowDims(const hlo::Window& window, int operands, RuleBuilder* rule) {
  for (size_t dim = 0; dim < window.size(); ++dim) {
    const int64_t extent = rule->operand(0).dim(dim);
    const FactorKind kind = IsTrivial(window[dim]) ? FactorKind::kPassThrough : FactorKind::kPermutation;
    const int factor = rule->AddFactor(std::max(extent, rule->result().dim(dim)), kind);
    for (int i = 0; i < operands; ++i) rule->Operand(i, dim, factor);
    rule->AllResults(dim, factor);
  }
}

void AddSpatialDims(const hlo::ConvolutionAttr& conv, RuleBuilder* rule) {
  for (size_t i = 0; i < conv.window.size(); ++i) {
    const int64_t in = conv.input_spatial[i], kernel = conv.kernel_spatial[i], out = conv.output_spatial[i];
    const int64_t extent = rule->operand(0).dim(in), out_extent = rule->result().dim(out);
    if (IsTrivial(conv.window[i])) {
      const int factor = rule->AddFactor(extent, FactorKind::kPassThrough);
      rule->Operand(0, in, factor);
      rule->Result(0, out, factor);
    } else if (CoversAll(conv.window[i], extent, out_extent)) {
      const int factor = rule->AddFactor(extent, FactorKind::kReduction);
      rule->Operand(0, in, factor);
      rule->Operand(1, kernel, factor);
    } else if (conv.window[i].size > out_extent) {
      // A kernel larger than the result, as in the gradient of a kernel: a contraction but for the edges, where a shard
      // of the kernel needs a halo of the input.
      const int factor = rule->AddFactor(std::max(extent, conv.window[i].size), FactorKind::kPermutation);
      rule->Operand(0, in, factor);
      rule->Operand(1, kernel, factor);
    } else {
      const int factor = rule->AddFactor(std::max(extent, out_extent), FactorKind::kPermutation);
      rule->Operand(0, in, factor);
      rule->Result(0, out, factor);
    }
  }
}

}  // namespace

// A grouped dimension is two factors, the group the major one: with feature groups g the input's feature is g*c, the
// kernel's output feature and the result's feature are g*o; with batch groups the input's batch is g*b.
OpRule ConvolutionRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  const auto& conv = instruction.attr<hlo::ConvolutionAttr>();
  const Shape &input = rule.operand(0), &kernel = rule.operand(1);
  if (conv.batch_groups > 1 || conv.feature_groups > 1) {
    const int group = rule.AddFactor(std::max(conv.batch_groups, conv.feature_groups), FactorKind::kPassThrough);
    rule.Operand(0, conv.batch_groups > 1 ? conv.input_batch : conv.input_feature, group);
    rule.Operand(1, conv.kernel_output_feature, group);
    rule.Result(0, conv.output_feature, group);
  }
  auto add = [&](int64_t size, FactorKind kind, int operand, int64_t dim, int other, int64_t other_dim) {
    const int factor = rule.AddFactor(size, kind);
    rule.Operand(operand, dim, factor);
    if (other < 0) rule.Result(0, other_dim, factor);
    if (other >= 0) rule.Operand(other, other_dim, factor);
  };
  add(input.dim(conv.input_batch) / conv.batch_groups, FactorKind::kPassThrough, 0, conv.input_batch, -1,
      conv.output_batch);
  add(kernel.dim(conv.kernel_output_feature) / (conv.feature_groups * conv.batch_groups), FactorKind::kPassThrough, 1,
      conv.kernel_output_feature, -1, conv.output_feature);
  add(kernel.dim(conv.kernel_input_feature), FactorKind::kReduction, 0, conv.input_feature, 1,
      conv.kernel_input_feature);
  AddSpatialDims(conv, &rule);
  return rule.Take();
}

OpRule ReduceWindowRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  AddWindowDims(instruction.attr<hlo::WindowAttr>().window, rule.operand_count() / 2, &rule);
  return rule.Take();
}

// Operands: the array, the source (one element a window), the init value.
OpRule SelectAndScatterRule(const hlo::Instruction& instruction) {
  RuleBuilder rule(instruction);
  AddWindowDims(instruction.attr<hlo::WindowAttr>().window, 2, &rule);
  return rule.Take();
}

}  // namespace gangway::rules
