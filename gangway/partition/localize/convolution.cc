// Convolution along split spatial dimensions: a halo of the image for every shard of the result or, where the kernel is
// split (a kernel's gradient is the convolution of an image by an image), of every shard of the kernel.
#include <algorithm>
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
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

// What a device computes, or one of several parts that add up.
struct LocalConvolution {
  std::vector<Instruction*> operands;
  hlo::Window window;  // its sizes follow the kernel
};

// Taps of the shards of a split kernel that are its own on the first `shards` shards and padding on the others.
struct Taps {
  int64_t begin = 0, end = 0;
  int64_t shards = 0;
};

std::vector<Taps> TapsOf(int64_t kernel, int64_t shards) {
  const int64_t each = ShardExtent(kernel, shards);
  const int64_t last = (kernel - 1) / each, rest = kernel - last * each;
  std::vector<Taps> taps = {{0, rest, last + 1}};
  if (rest < each) taps.push_back({rest, each, last});
  return taps;
}

Instruction* SliceAlong(Instruction* x, int64_t dim, int64_t begin, int64_t end, hlo::Builder& b) {
  if (begin == 0 && end == x->shape().dim(dim)) return x;
  DimVector starts(x->shape().rank(), 0), limits = x->shape().dims();
  starts[dim] = begin;
  limits[dim] = end;
  return b.Slice(x, std::move(starts), std::move(limits));
}

// The taps, and what they meet of an image whose holes are filled. Where they are padding the image is zero as well as
// they are: zero times what is not finite is no number.
LocalConvolution OnlyTaps(const Taps& taps, LocalConvolution of, const WindowDimension& dim, const Sharding& kernel,
                          Context& context) {
  hlo::Builder& b = context.builder();
  Instruction *&image = of.operands[0], *&taken = of.operands[1];
  taken = SliceAlong(taken, dim.kernel_dim, taps.begin, taps.end, b);
  image = SliceAlong(image, dim.operand_dim, taps.begin * dim.stride, (taps.end - 1) * dim.stride + dim.reach, b);
  if (taps.shards == kernel.ShardCount(dim.kernel_dim)) return of;
  Instruction* place = context.coordinates().Of(kernel.mesh, kernel.dims[dim.kernel_dim].axes);
  Instruction* own = b.Compare(hlo::ComparisonDirection::kLt, place, b.Index(taps.shards));
  const Shape shape = WithoutLayout(image->shape());
  image = b.Select(b.BroadcastScalar(own, WithDType(shape, DType::kPred)), image, b.Splat(shape, 0));
  return of;
}

bool IsPadded(const WindowDimension& dim, const WindowRequest& request) {
  return dim.IsContracted() && request.results % request.shards != 0;
}

// Every part again by the taps of a kernel that is padded along a split dimension.
std::vector<LocalConvolution> ByTaps(const std::vector<LocalConvolution>& parts, const Instruction& instruction,
                                     const WindowDimension& dim, const Sharding& kernel, Context& context) {
  std::vector<LocalConvolution> split;
  for (const LocalConvolution& part : parts) {
    for (const Taps& taps :
         TapsOf(instruction.operand(1)->shape().dim(dim.kernel_dim), kernel.ShardCount(dim.kernel_dim))) {
      split.push_back(OnlyTaps(taps, part, dim, kernel, context));
    }
  }
  return split;
}

Instruction* EmitPart(const Instruction& instruction, const OpPlan& plan, LocalConvolution part,
                      const std::vector<SkippedResults>& skipped, Context& context) {
  Instruction* result = LocalClone(instruction, plan, std::move(part.operands), context);
  auto& local = result->mutable_attr<hlo::ConvolutionAttr>();
  for (size_t s = 0; s < part.window.size(); ++s) {
    part.window[s].size = local.window[s].size;
    local.window[s] = part.window[s];
  }
  if (skipped.empty()) return result;
  const Shape own = result->shape();
  Shape computed = own;
  for (const SkippedResults& skip : skipped) {
    computed.set_dim(skip.dim, own.dim(skip.dim) + *std::max_element(skip.starts.begin(), skip.starts.end()));
  }
  result->set_shape(computed);
  for (const SkippedResults& skip : skipped) {
    result = SliceFrom(result, skip.dim, skip.starts, own.dim(skip.dim), plan.results[0], context);
  }
  return result;
}

// The local operation with its windows, without the results that are not the shard's own.
void EmitSum(const Instruction& instruction, const OpPlan& plan, const std::vector<LocalConvolution>& parts,
             const std::vector<SkippedResults>& skipped, Context& context) {
  Instruction* sum = nullptr;
  for (const LocalConvolution& part : parts) {
    Instruction* result = EmitPart(instruction, plan, part, skipped, context);
    sum = sum == nullptr ? result : context.builder().Binary(hlo::Opcode::kAdd, sum, result);
  }
  context.Set(instruction, sum, plan.results[0]);
}

// A padded kernel's image has its holes filled: its taps are taken apart.
LocalWindow EmitWindowOf(const WindowChoice& choice, size_t i, Instruction* image, Instruction* zero,
                         Context& context) {
  const WindowDimension& dim = choice.dims[i];
  const WindowRequest& request = choice.windows[i].request;
  if (IsPadded(dim, request)) {
    const Sharding& sharding = choice.plan.operands[0];
    return {EmitDilatedWindow(choice.windows[i], image, dim.operand_dim, sharding, zero, context), 0, 0, 1, {}};
  }
  const bool is_skewed = !request.IsAligned() && !dim.IsContracted() && dim.stride == 1;
  return is_skewed ? EmitSkewedWindow(choice, i, image, zero, context)
                   : EmitLocalWindow(choice, i, image, zero, context);
}

}  // namespace

absl::Status LocalizeConvolution(const Instruction& instruction, Context& context) {
  const auto& conv = instruction.attr<hlo::ConvolutionAttr>();
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const WindowChoice choice,
                      ChooseWindows(instruction, rule, Candidates(instruction, rule), 1, context));
  if (choice.outcome != WindowChoice::Outcome::kChosen) return LocalizeWithoutWindows(choice, instruction, context);

  LocalConvolution whole{{}, conv.window};
  GW_ASSIGN_OR_RETURN(whole.operands, PreparedOperands(instruction, rule, choice.plan, context));
  Instruction* zero = context.builder().Constant(Literal(Shape::Scalar(whole.operands[0]->shape().dtype())));
  const Sharding& kernel = choice.plan.operands[1];
  std::vector<SkippedResults> skipped;
  std::vector<const WindowDimension*> padded;  // of the kernel
  for (size_t i = 0; i < choice.dims.size(); ++i) {
    const WindowDimension& dim = choice.dims[i];
    if (IsPadded(dim, choice.windows[i].request)) {
      padded.push_back(&dim);
      whole.operands[1] =
          context.MaskPadding(whole.operands[1], kernel, instruction.operand(1)->shape(), {dim.kernel_dim}, zero);
    }
    const LocalWindow local = EmitWindowOf(choice, i, whole.operands[0], zero, context);
    if (!local.skipped.empty()) skipped.push_back({dim.result_dim, local.skipped});
    whole.operands[0] = local.operand;
    for (size_t s = 0; s < whole.window.size(); ++s) {
      if (conv.input_spatial[s] != dim.operand_dim) continue;
      whole.window[s].pad_low = local.pad_low;
      whole.window[s].pad_high = local.pad_high;
      whole.window[s].base_dilation = local.base_dilation;
    }
  }
  std::vector<LocalConvolution> parts = {std::move(whole)};
  for (const WindowDimension* dim : padded) parts = ByTaps(parts, instruction, *dim, kernel, context);
  EmitSum(instruction, choice.plan, parts, skipped, context);
  return absl::OkStatus();
}

}  // namespace gangway::partition
