// Convolution along split spatial dimensions: a halo of the image for every shard of the result or, where the kernel is
// split (a kernel's gradient is the convolution of an image by an image), of every shard of the kernel.
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
  for (size_t i = 0; i < choice.dims.size(); ++i) {
    const WindowDimension& dim = choice.dims[i];
    if (dim.IsContracted()) {
      operands[1] = context.MaskPadding(operands[1], choice.plan.operands[1], instruction.operand(1)->shape(),
                                        {dim.kernel_dim}, zero);
    }
    const LocalWindow local = EmitLocalWindow(choice, i, operands[0], zero, context);
    operands[0] = local.operand;
    for (size_t s = 0; s < window.size(); ++s) {
      if (conv.input_spatial[s] != dim.operand_dim) continue;
      window[s].pad_low = local.pad_low;
      window[s].pad_high = local.pad_high;
      window[s].base_dilation = local.base_dilation;
    }
  }
  EmitLocal(instruction, choice.plan, std::move(operands), context);
  auto& local = context.Value(instruction).local->mutable_attr<hlo::ConvolutionAttr>();
  for (size_t s = 0; s < window.size(); ++s) {
    window[s].size = local.window[s].size;
    local.window[s] = window[s];
  }
  return absl::OkStatus();
}

}  // namespace gangway::partition
