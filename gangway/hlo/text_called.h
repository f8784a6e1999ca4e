// How HLO text names the computations an instruction calls: to_apply=%add, condition=%c, body=%b. Internal to hlo/.
#pragma once

#include <vector>

#include "gangway/hlo/text_attributes.h"

namespace gangway::hlo {

absl::StatusOr<std::vector<Computation*>> ReadCalled(const AttributeContext& context, const Module& module,
                                                     AttributeText* text);
void WriteCalled(const Instruction& instruction, AttributeWriter* writer);

}  // namespace gangway::hlo
