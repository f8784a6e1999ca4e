// OpSchema: the inherent attributes of each op of the dialects vhlo, sdy and builtin, in the order in which bytecode
// version 5 and later writes them (ascending by name).
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gangway::stablehlo {

struct OpSchema {
  absl::string_view name;        // with dialect and version, "vhlo.add_v1"
  absl::string_view attributes;  // separated by spaces; an optional one ends in '?'
};

// Every op version StableHLO 0.9 to 1.22 can write.
absl::Span<const OpSchema> AllSchemas();
const OpSchema* FindSchema(absl::string_view name);  // null when unknown

}  // namespace gangway::stablehlo
