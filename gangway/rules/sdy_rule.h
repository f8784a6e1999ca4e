// Sharding rules that custom calls bring along, in Shardy's text:
// `#sdy.op_sharding_rule<([i, jk], [k])->([i, *]) {i=8, j=4, k=2} reduction={k} need_replication={j}, custom>`.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/rules/rule.h"

namespace gangway::rules {

// Fails when the text is malformed or does not fit the instruction's operands and results.
absl::StatusOr<OpRule> ParseSdyRule(absl::string_view text, const hlo::Instruction& instruction);

}  // namespace gangway::rules
