#include "gangway/stablehlo/reader.h"

#include "absl/strings/match.h"
#include "gangway/base/status.h"
#include "gangway/hlo/verifier.h"
#include "gangway/stablehlo/bytecode/artifact.h"
#include "gangway/stablehlo/translation.h"

namespace gangway::stablehlo {

bool IsPortableArtifact(absl::string_view bytes) { return absl::StartsWith(bytes, "ML\xEFR"); }

absl::StatusOr<std::unique_ptr<hlo::Module>> ReadPortableArtifact(absl::string_view bytes) {
  GW_ASSIGN_OR_RETURN_WITH(std::unique_ptr<bytecode::Artifact> artifact, bytecode::Artifact::Parse(bytes),
                           "StableHLO artifact");
  auto module = std::make_unique<hlo::Module>("main");
  Translation translation(*artifact, module.get());
  GW_RETURN_IF_ERROR_WITH(translation.Run(), absl::StrCat("program ", module->name()));
  module->RemoveUnreachable();
  module->SortComputations();
  GW_RETURN_IF_ERROR_WITH(hlo::Verify(*module), absl::StrCat("program ", module->name()));
  return module;
}

}  // namespace gangway::stablehlo
