// Convolution along split spatial dimensions: a halo of the image for every shard of the result or, where the kernel is
// split (a kernel's gradient is the convolution of an image by an image), of every shard of the kernel.
#include <algorithm>
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/table.h"
#include "gangway/partition/window_choice.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

std::vector<WindowDimension> Candidates(const Instruction& instruction, const rules::OpRule& rule) {
  const auto& conv = instruction.attr<hlo::ConvolutionAttr>();
  std::vector<WindowDimension> candidates;
  for (size_t i = 0; i < conv.window.size(); ++i) {
    const hlo::WindowDim& window = conv.window[i];
    const int64_t d = conv.input_spatial[i], out = conv.output_spatial[i];
    const int factor = rule.operands[0][d].empty() ? -1 : rule.operands[0][d][0];
    if (factor < 0 || rule.factors[factor].kind != rules::FactorKind::kPermutation) continue;
    candidates.push_back({d, out, -1, -window.pad_low, window.stride, (window.size - 1) * window.window_dilation + 1,
                          window.base_dilation});
    if (window.reversal) continue;
    const int64_t reach = (instruction.shape().dim(out) - 1) * window.stride + 1;
    candidates.push_back(
        {d, -1, conv.kernel_spatial[i], -window.pad_low, window.window_dilation, reach, window.base_dilation});
  }
  return candidates;
}

// Results of which every shard computes some more than its own, along a dimension.
struct SkippedResults {
  int64_t dim = 0;
  std::vector<int64_t> starts;  // of its own, by shard
};

// The local operation with its windows; what is not the shard's own is cut off.
void EmitWindowed(const Instruction& instruction, const OpPlan& plan, std::vector<Instruction*> operands,
                  hlo::Window window, const std::vector<SkippedResults>& skipped, Context& context) {
  EmitLocal(instruction, plan, std::move(operands), context);
  Instruction* result = context.Value(instruction).local;
  auto& local = result->mutable_attr<hlo::ConvolutionAttr>();
  for (size_t s = 0; s < window.size(); ++s) {
    window[s].size = local.window[s].size;
    local.window[s] = window[s];
  }
  if (skipped.empty()) return;
  const Shape own = result->shape();
  Shape computed = own;
  for (const SkippedResults& skip : skipped) {
    computed.set_dim(skip.dim, own.dim(skip.dim) + *std::max_element(skip.starts.begin(), skip.starts.end()));
  }
  result->set_shape(computed);
  for (const SkippedResults& skip : skipped) {
    result = SliceFrom(result, skip.dim, skip.starts, own.dim(skip.dim), plan.results[0], context);
  }
  context.Set(instruction, result, plan.results[0]);
}

}  // namespace

absl::Status LocalizeConvolution(const Instruction& instruction, Context& context) {
  const auto& conv = instruction.attr<hlo::ConvolutionAttr>();
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const WindowChoice choice,
                      ChooseWindows(instruction, rule, Candidates(instruction, rule), 1, context));
  if (choice.outcome != WindowChoice::Outcome::kChosen) return LocalizeWithoutWindows(choice, instruction, context);

  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> operands, PreparedOperands(instruction, rule, choice.plan, context));
  Instruction* zero = context.builder().Constant(Literal(Shape::Scalar(operands[0]->shape().dtype())));
  hlo::Window window = conv.window;
  std::vector<SkippedResults> skipped;
  for (size_t i = 0; i < choice.dims.size(); ++i) {
    const WindowDimension& dim = choice.dims[i];
    if (dim.IsContracted()) {
      operands[1] = context.MaskPadding(operands[1], choice.plan.operands[1], instruction.operand(1)->shape(),
                                        {dim.kernel_dim}, zero);
    }
    const bool is_skewed = !choice.windows[i].request.IsAligned() && !dim.IsContracted() && dim.stride == 1;
    const LocalWindow local = is_skewed ? EmitSkewedWindow(choice, i, operands[0], zero, context)
                                        : EmitLocalWindow(choice, i, operands[0], zero, context);
    if (is_skewed) skipped.push_back({dim.result_dim, local.skipped});
    operands[0] = local.operand;
    for (size_t s = 0; s < window.size(); ++s) {
      if (conv.input_spatial[s] != dim.operand_dim) continue;
      window[s].pad_low = local.pad_low;
      window[s].pad_high = local.pad_high;
      window[s].base_dilation = local.base_dilation;
    }
  }
  EmitWindowed(instruction, choice.plan, std::move(operands), std::move(window), skipped, context);
  return absl::OkStatus();
}

}  // namespace gangway::partition
