#include <memory>
#include <utility>

#include "gangway/base/status.h"
#include "gangway/controller/controller_server.h"
#include "gangway/stablehlo/reader.h"

namespace gangway::controller {

absl::StatusOr<compile::CompiledProgram> CompileArtifact(const std::string& artifact,
                                                         const compile::CompileOptions& options) {
  GW_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, stablehlo::ReadPortableArtifact(artifact));
  return compile::CompileModule(std::move(module), options);
}

}  // namespace gangway::controller
