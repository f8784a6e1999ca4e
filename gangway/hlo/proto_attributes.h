// The attributes of an instruction as fields of its proto. Internal to hlo/.
#pragma once

#include "absl/status/status.h"
#include "gangway/hlo/instruction.h"
#include "xla/service/hlo.pb.h"

namespace gangway::hlo {

// Sets the fields of the instruction's attributes. Fails for operations whose meaning is kept as text only.
absl::Status WriteAttributes(const Instruction& instruction, xla::HloInstructionProto* proto);

// The attributes of an opcode, values checked only as far as memory safety needs: Verify does the rest.
absl::StatusOr<Attributes> ReadAttributes(const xla::HloInstructionProto& proto, Opcode opcode,
                                          absl::Span<Instruction* const> operands);

}  // namespace gangway::hlo
