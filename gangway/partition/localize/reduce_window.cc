// reduce-window: cumulative reductions are scans; any other window along a split dimension needs a halo.
#include <optional>
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/scan.h"
#include "gangway/partition/localize/table.h"
#include "gangway/partition/window_choice.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

// From here on a scan is less work than a window of the dimension's extent for every element, split or not.
constexpr int64_t kMinScan = 16;

// The window reaches from each element to the beginning (or the end) of one dimension.
std::optional<ScanSpec> AsScan(const Instruction& instruction) {
  std::optional<ScanSpec> spec;
  const hlo::Window& window = instruction.attr<hlo::WindowAttr>().window;
  for (size_t d = 0; d < window.size(); ++d) {
    if (window[d] == hlo::WindowDim{}) continue;
    const int64_t extent = instruction.operand(0)->shape().dim(static_cast<int64_t>(d));
    hlo::WindowDim forward, backward;
    forward.size = backward.size = extent;
    forward.pad_low = backward.pad_high = extent - 1;
    if (spec || (window[d] != forward && window[d] != backward)) return std::nullopt;
    spec = ScanSpec{instruction.called()[0], static_cast<int64_t>(d), window[d] == backward};
  }
  if (!spec || !IsArrayCombiner(*spec->combiner)) return std::nullopt;
  return spec;
}

// Padding is combined as often as the window reaches out, so its value is neutral in any program that means something;
// this is sure for the known ones.
bool HasNeutralInits(const Instruction& instruction) {
  if (instruction.operand_count() != 2) return true;
  const auto reduction = rules::ReductionOf(*instruction.called()[0]);
  return !reduction || IsIdentity(*instruction.operand(1), *reduction);
}

}  // namespace

absl::Status LocalizeReduceWindow(const Instruction& instruction, Context& context) {
  if (const auto spec = AsScan(instruction); spec && HasNeutralInits(instruction)) {
    const Sharding sharding = ScanSharding(instruction, context);
    const bool is_long = instruction.operand(0)->shape().dim(spec->dim) >= kMinScan;
    if (SameMesh(sharding.mesh, context.mesh()) && (is_long || sharding.IsSplit(spec->dim))) {
      return LocalizeAsScan(instruction, *spec, sharding, context);
    }
  }
  const auto& window = instruction.attr<hlo::WindowAttr>().window;
  const int64_t arrays = instruction.operand_count() / 2;
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  std::vector<WindowDimension> candidates;
  for (size_t i = 0; i < window.size(); ++i) {
    if (window[i] == hlo::WindowDim{}) continue;
    const int64_t d = static_cast<int64_t>(i);
    candidates.push_back({d, d, -1, -window[i].pad_low, window[i].stride,
                          (window[i].size - 1) * window[i].window_dilation + 1, window[i].base_dilation});
  }
  GW_ASSIGN_OR_RETURN(const WindowChoice choice, ChooseWindows(instruction, rule, candidates, arrays, context));
  if (choice.outcome != WindowChoice::Outcome::kChosen) return LocalizeWithoutWindows(choice, instruction, context);

  GW_ASSIGN_OR_RETURN(std::vector<Instruction*> operands, PreparedOperands(instruction, rule, choice.plan, context));
  hlo::Window local_window = window;
  for (size_t i = 0; i < choice.dims.size(); ++i) {
    for (int64_t a = 0; a < arrays; ++a) {
      const LocalWindow local = EmitLocalWindow(choice, i, operands[a], operands[arrays + a], context);
      operands[a] = local.operand;
      hlo::WindowDim& dim = local_window[choice.dims[i].operand_dim];
      dim.pad_low = local.pad_low;
      dim.pad_high = local.pad_high;
      dim.base_dilation = local.base_dilation;
    }
  }
  const Shape shape = ShardShape(WithoutLayout(instruction.shape()), choice.plan.results);
  Instruction* local = context.Clone(instruction, shape, std::move(operands));
  local->mutable_attr<hlo::WindowAttr>().window = std::move(local_window);
  SetResults(instruction, local, choice.plan.results, context);
  return absl::OkStatus();
}

}  // namespace gangway::partition
