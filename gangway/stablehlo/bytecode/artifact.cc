#include "gangway/stablehlo/bytecode/artifact.h"

#include <utility>

#include "gangway/base/status.h"
#include "gangway/stablehlo/bytecode/ir_reader.h"

namespace gangway::bytecode {

absl::StatusOr<std::unique_ptr<Artifact>> Artifact::Parse(absl::string_view file) {
  GW_ASSIGN_OR_RETURN(Container container, Container::Parse(file));
  std::unique_ptr<Artifact> artifact(new Artifact(std::move(container)));
  GW_ASSIGN_OR_RETURN(artifact->tree_, ReadIr(artifact->container_));
  return artifact;
}

}  // namespace gangway::bytecode
