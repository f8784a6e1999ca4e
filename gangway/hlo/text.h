// HLO text, as XLA prints and reads it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/hlo/module.h"

namespace gangway::hlo {

// Reads a module; XLA's own dumps parse. Errors name line and token. Shapes are taken as written (Verify checks them).
absl::StatusOr<std::unique_ptr<Module>> ParseModule(absl::string_view text);

// ParseModule(PrintModule(m)) is m, and PrintModule(ParseModule(t)) is t for text that XLA printed.
std::string PrintModule(const Module& module);

}  // namespace gangway::hlo
