// The prefix combination of several arrays by any associative function, as a custom call: passes make it of trees of
// slices (passes/scan_tree.h), the partitioner turns it into operations again. No client and no plugin sees it.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "gangway/hlo/instruction.h"

namespace gangway::hlo {

// N arrays of the same dimensions to their scans (N > 1: a tuple); backend_config is the dimension, the one called
// computation combines N scalars with N that come after them.
inline constexpr absl::string_view kScanCall = "gangway.scan";

// The dimension of a well-formed scan; nullopt for anything else.
std::optional<int64_t> ScanDimension(const Instruction& instruction);

}  // namespace gangway::hlo
