#include "gangway/propagate/graph_builder.h"

#include "gangway/base/status.h"
#include "gangway/propagate/control_flow.h"
#include "gangway/propagate/main_mesh.h"

namespace gangway::propagate {
const std::vector<bool>& OutputFlags(const hlo::Module& module, const PropagateOptions& options) {
  return options.propagate_to_output.empty() ? module.config().propagate_to_output : options.propagate_to_output;
}

const std::vector<bool>& ParameterFlags(const hlo::Module& module, const PropagateOptions& options) {
  return options.propagate_to_parameters.empty() ? module.config().propagate_to_parameters
                                                 : options.propagate_to_parameters;
}

absl::Status GraphBuilder::Build() {
  graph_.computations_ = ControlComputations(module_);
  graph_.added_root_ = SeparateRoots(module_, graph_.computations_);
  graph_.mesh_ = ChooseMesh(
      module_, std::vector<const hlo::Computation*>(graph_.computations_.begin(), graph_.computations_.end()));
  NumberLeaves();
  for (const hlo::Computation* computation : graph_.computations_) {
    for (const auto& instruction : computation->instructions()) TieLeaves(*instruction);
  }
  MakeValues();
  GW_RETURN_IF_ERROR(ReadAnnotations());
  CloseEntry();
  SpreadManual();
  for (const hlo::Computation* computation : graph_.computations_) {
    for (const auto& instruction : computation->instructions()) GW_RETURN_IF_ERROR(RelateByRule(*instruction));
  }
  return absl::OkStatus();
}

}  // namespace gangway::propagate
