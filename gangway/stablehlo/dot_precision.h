// Precision of dot and convolution: the attributes precision_config and the dot algorithm.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "gangway/hlo/attributes.h"
#include "gangway/stablehlo/op_view.h"

namespace gangway::stablehlo {

// Empty when all operands have the default.
absl::StatusOr<std::vector<hlo::Precision>> ReadPrecisions(const OpView& op);

// xla.PrecisionConfig.Algorithm: 0 when the op says none (or is too old to say).
absl::StatusOr<int> ReadDotAlgorithm(const OpView& op);

}  // namespace gangway::stablehlo
