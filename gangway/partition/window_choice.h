// Whether, and along which dimensions, an operation is split where its shards need their neighbours' elements.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/hlo/instruction.h"
#include "gangway/partition/context.h"
#include "gangway/partition/op_plan.h"
#include "gangway/partition/window.h"
#include "gangway/rules/rule.h"

namespace gangway::partition {

// One way to split a dimension of operand 0. Either the result is split alike and each of its elements needs a window
// (kernel_dim < 0), or a kernel (operand 1) is: then each of the kernel's elements needs a window, and the results are
// partial sums (result_dim < 0). Base, stride, reach and dilation as in WindowRequest.
struct WindowDimension {
  int64_t operand_dim = 0;
  int64_t result_dim = -1, kernel_dim = -1;
  int64_t base = 0, stride = 1, reach = 1, dilation = 1;

  bool IsContracted() const { return kernel_dim >= 0; }
};

struct WindowChoice {
  enum class Outcome : uint8_t { kNone, kDearer, kChosen };  // no window applies; gathering is cheaper; windows it is
  Outcome outcome = Outcome::kNone;
  OpPlan plan;  // operands and results split along the windows' dimensions too
  std::vector<WindowDimension> dims;
  std::vector<WindowPlan> windows;  // of `dims`

  const WindowDimension* Along(int64_t operand_dim) const;  // null when that dimension has no window
};

// The cheapest plan: the rule's own, or one that splits some of the candidate dimensions, each operand dimension in at
// most one way. The first `windowed` operands have the windows of operand 0.
absl::StatusOr<WindowChoice> ChooseWindows(const hlo::Instruction& instruction, const rules::OpRule& rule,
                                           std::vector<WindowDimension> candidates, int64_t windowed, Context& context);

// The operation without windows: by its rule, which is a fallback unless it was chosen.
absl::Status LocalizeWithoutWindows(const WindowChoice& choice, const hlo::Instruction& instruction, Context& context);

// A window of the local operation on what EmitLocalWindow returns.
struct LocalWindow {
  hlo::Instruction* operand = nullptr;
  int64_t pad_low = 0, pad_high = 0, base_dilation = 1;
  std::vector<int64_t> skipped;  // by shard: leading results of the local operation that are not its own; empty: none
};
// Window `i` of the choice of the operand's shard. Holes are left to the operation's own dilation where they fall
// alike on every shard.
LocalWindow EmitLocalWindow(const WindowChoice& choice, size_t i, hlo::Instruction* operand, hlo::Instruction* fill,
                            Context& context);
// The same for stride 1, where holes that do not fall alike are left to the operation's dilation too: every shard then
// computes some results before or after its own.
LocalWindow EmitSkewedWindow(const WindowChoice& choice, size_t i, hlo::Instruction* operand, hlo::Instruction* fill,
                             Context& context);

}  // namespace gangway::partition
