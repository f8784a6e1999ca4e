// What cumulative windows and scan calls share: where a scan is split, and its emission for an instruction.
#pragma once

#include "absl/status/status.h"
#include "gangway/partition/scan.h"

namespace gangway::partition {

// Where the scanned dimension is to be split: as completion wants the result, else as the first array lies.
Sharding ScanSharding(const hlo::Instruction& instruction, Context& context);

// The instruction's first operands, one a result, are scanned; neutral elements, if any, are the others.
absl::Status LocalizeAsScan(const hlo::Instruction& instruction, const ScanSpec& spec, const Sharding& sharding,
                            Context& context);

// A custom call that is a scan (hlo/scan_call.h) along `dim`.
absl::Status LocalizeScanCall(const hlo::Instruction& instruction, int64_t dim, Context& context);

}  // namespace gangway::partition
