// HloModuleProto, the form PJRT plugins take (bytes; proto types stay inside proto.cc).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/hlo/module.h"

namespace gangway::hlo {

absl::StatusOr<std::string> SerializeModule(const Module& module);
absl::StatusOr<std::unique_ptr<Module>> DeserializeModule(absl::string_view bytes);

}  // namespace gangway::hlo
