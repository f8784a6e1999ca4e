// The rules of the simplify pass. Internal to passes.
#pragma once

#include <optional>

#include "absl/types/span.h"
#include "gangway/hlo/builder.h"

namespace gangway::passes {

// Looks at one instruction and gives what computes the same more simply (new instructions go through the builder), or
// nothing when it does not apply.
using Rule = std::optional<hlo::Instruction*> (*)(hlo::Builder& builder, hlo::Instruction* instruction);
struct OpRule {
  hlo::Opcode opcode;
  Rule rule;
};

absl::Span<const OpRule> ViewRules();        // simplify_views.cc: reshape, transpose, broadcast, convert, tuples
absl::Span<const OpRule> SliceRules();       // simplify_slices.cc: slice, dynamic-slice, pad, concatenate
absl::Span<const OpRule> ArithmeticRules();  // simplify_arithmetic.cc: neutral elements, constant choices
absl::Span<const OpRule> CollectiveRules();  // simplify_collectives.cc: groups of one

}  // namespace gangway::passes
