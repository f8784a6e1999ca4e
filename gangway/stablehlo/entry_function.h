// ConvertEntryFunction: the function main with what the outside agreed on: shardings, donation, memory kinds, layouts.
#pragma once

#include "absl/status/status.h"
#include "gangway/stablehlo/translation.h"

namespace gangway::stablehlo {

absl::Status ConvertEntryFunction(Translation& program, const bytecode::Operation& function);

}  // namespace gangway::stablehlo
