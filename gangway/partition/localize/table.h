// One localizer per opcode.
#pragma once

#include "absl/status/status.h"
#include "gangway/hlo/instruction.h"
#include "gangway/partition/context.h"

namespace gangway::partition {

// Emits the per-device form of one source instruction and sets its values.
using Localizer = absl::Status (*)(const hlo::Instruction& instruction, Context& context);

// Of every opcode; never null. Opcodes the partitioner cannot do have one that returns Unimplemented with the reason.
Localizer LocalizerOf(hlo::Opcode opcode);

// Why an opcode is refused; empty when it is not.
absl::string_view UnsupportedReason(hlo::Opcode opcode);

// By the sharding rule alone: choose, reshard, run on local shapes (generic.h).
absl::Status LocalizeByRule(const hlo::Instruction& instruction, Context& context);
// The same where the family's own plan was weighed and found dearer: what it gathers is no fallback.
absl::Status LocalizeByChoice(const hlo::Instruction& instruction, Context& context);
// Whole on every device, reported.
absl::Status LocalizeReplicated(const hlo::Instruction& instruction, Context& context);

// localize/<family>.cc
absl::Status LocalizeParameter(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeConstant(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeIota(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeTuple(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeGetTupleElement(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeOptBarrier(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeTokenOp(const hlo::Instruction& instruction,
                             Context& context);  // after-all, add-dependency, domain
absl::Status LocalizeWhile(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeConditional(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeCall(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeCustomCall(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeCollective(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizePartitionId(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeBroadcast(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeReduce(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeSlice(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizePad(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeReverse(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeConcatenate(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeConvolution(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeReduceWindow(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeSelectAndScatter(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeSort(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeTopK(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeFft(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeDynamicSlice(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeDynamicUpdateSlice(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeRngBitGenerator(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeGather(const hlo::Instruction& instruction, Context& context);
absl::Status LocalizeScatter(const hlo::Instruction& instruction, Context& context);

}  // namespace gangway::partition
