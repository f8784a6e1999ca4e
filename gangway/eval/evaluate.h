// The reference evaluator: what a module means, computed by one plain function per operation. The oracle of every test
// of the compiler, and the machine behind simulated devices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gangway/eval/value.h"
#include "gangway/hlo/module.h"

namespace gangway::eval {

// Computes one custom call on one device.
using CustomCallFunction =
    std::function<absl::StatusOr<Value>(const hlo::Instruction& call, absl::Span<const Value> operands)>;
// Computes one custom call on all devices that run it, in lockstep: operands[i][d] is operand i on the d-th of
// `devices`.
using LockstepCustomCallFunction = std::function<absl::StatusOr<std::vector<Value>>(
    const hlo::Instruction& call, absl::Span<const std::vector<Value>> operands, absl::Span<const int64_t> devices)>;

struct EvaluateOptions {
  int64_t max_while_steps = int64_t{1} << 32;              // of one loop
  int64_t max_value_bytes = int64_t{1} << 33;              // of one result on one device
  std::map<std::string, CustomCallFunction> custom_calls;  // by target; looked up before the built-in ones
  std::map<std::string, LockstepCustomCallFunction> lockstep_custom_calls;
};

// The module must pass hlo::Verify. Arguments must have the shapes of the entry's parameters (layouts aside). Errors
// name the instruction. Floats of up to 32 bits are computed in double and rounded once per operation; sums of dot,
// convolution and reduce are rounded once at the end.
absl::StatusOr<Literal> Evaluate(const hlo::Module& module, absl::Span<const Literal> arguments,
                                 const EvaluateOptions& options = {});

// Runs one program on `num_devices` devices in lockstep: arguments[d] are device d's, and so are the results. Device d
// is partition d % config.num_partitions of replica d / config.num_partitions. A collective whose group is split by
// control flow that differs between its members is an error.
// A whole (not partitioned) program with manual computations (shard_map) runs the same way: every device is given the
// whole arguments, runs the regions on its own shards and ends with the whole results.
absl::StatusOr<std::vector<Literal>> EvaluateSpmd(const hlo::Module& module,
                                                  const std::vector<std::vector<Literal>>& arguments,
                                                  int64_t num_devices, const EvaluateOptions& options = {});

// The same on shared values, without copies.
absl::StatusOr<std::vector<Value>> EvaluateValues(const hlo::Module& module,
                                                  const std::vector<std::vector<Value>>& arguments, int64_t num_devices,
                                                  const EvaluateOptions& options = {});

// One operation that depends on its operands and attributes only; Unimplemented for those that know a device or run
// computations with control flow of their own.
absl::StatusOr<Value> EvaluateInstruction(const hlo::Instruction& instruction, absl::Span<const Value> operands);

// Why an opcode cannot be evaluated; empty when it can.
absl::string_view UnsupportedReason(hlo::Opcode opcode);

}  // namespace gangway::eval
