// Custom calls: annotations and transfers that keep the array, calls with a sharding rule of their own, LAPACK's
// batches.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gangway/hlo/host_callback.h"
#include "gangway/hlo/lapack_call.h"
#include "gangway/hlo/scan_call.h"
#include "gangway/rules/family.h"
#include "gangway/rules/sdy_rule.h"

namespace gangway::rules {
namespace {

// The target only says something about its operand, which it returns.
bool KeepsTheArray(absl::string_view target) {
  for (absl::string_view name : {"annotate_device_placement", "LayoutConstraint", "MoveToHost", "MoveToDevice",
                                 "PinToHost", "PinToDevice", "xla.sdy.PropagationBarrier", "mhlo.erf", "mhlo.tan",
                                 "mhlo.topk_identity", "ResizeIdentity", "InspectSharding"}) {
    if (target == name) return true;
  }
  return false;
}

// Changes how a value is seen, not what it is: propagation knows these by name.
bool IsShardingCall(absl::string_view target) {
  return target == "Sharding" || target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape" ||
         target == "xla.sdy.FuncResultSharding" || target == "xla.sdy.ShardingGroup" ||
         target == "xla.sdy.GlobalToLocalShape" || target == "xla.sdy.LocalToGlobalShape";
}

// jax says how many leading dimensions of a call are batch.
int64_t BatchDims(const hlo::Instruction& instruction) {
  auto it = instruction.frontend_attributes().find("num_batch_dims");
  int64_t dims = 0;
  if (it == instruction.frontend_attributes().end() || !absl::SimpleAtoi(it->second, &dims)) return 0;
  return dims;
}

// Every other dimension passes through; the scanned one needs what the shards before hold.
OpRule ScanRule(const hlo::Instruction& instruction, int64_t scanned) {
  RuleBuilder rule(instruction);
  for (int64_t dim = 0; dim < rule.result().rank(); ++dim) {
    rule.Everywhere(dim, dim == scanned ? FactorKind::kPermutation : FactorKind::kPassThrough);
  }
  return rule.Take();
}

// JAX's own rule for the call is that all is needed whole.
bool IsTriangularSolve(const hlo::Instruction& instruction) {
  const Shape& shape = instruction.shape();
  if (hlo::LapackRoutine(instruction.attr<hlo::CustomCallAttr>().target) != "trsm") return false;
  return instruction.operand_count() == 2 && shape.IsArray() && shape.rank() >= 2 &&
         Shape::Compatible(shape, instruction.operand(1)->shape()) &&
         instruction.operand(0)->shape().rank() == shape.rank();
}

}  // namespace

OpRule CustomCallRule(const hlo::Instruction& instruction) {
  const std::string& target = instruction.attr<hlo::CustomCallAttr>().target;
  if (IsShardingCall(target)) return Control();
  if (const auto scanned = hlo::ScanDimension(instruction)) return ScanRule(instruction, *scanned);
  if (IsTriangularSolve(instruction)) {
    const std::string& config = instruction.attr<hlo::CustomCallAttr>().backend_config;
    return RightSidesRule(instruction, hlo::LapackCharacter(config, "side") == 'L');
  }
  auto text = instruction.frontend_attributes().find("xla.sdy.sharding_rule");
  if (text != instruction.frontend_attributes().end()) {
    auto rule = ParseSdyRule(text->second, instruction);
    return rule.ok() ? *std::move(rule) : Unsupported(std::string(rule.status().message()));
  }
  const bool has_tuple_operand =
      std::any_of(instruction.operands().begin(), instruction.operands().end(),
                  [](const hlo::Instruction* operand) { return operand->shape().IsTuple(); });
  if (KeepsTheArray(target) && !has_tuple_operand) return ElementwiseRule(instruction);
  if (const int64_t batch = BatchDims(instruction); batch > 0 && !has_tuple_operand) {
    RuleBuilder rule(instruction);
    for (int64_t dim = 0; dim < batch && rule.result_count() > 0 && dim < rule.result().rank(); ++dim) {
      rule.Everywhere(dim, FactorKind::kPassThrough);
    }
    return rule.Take();
  }
  if (target == hlo::kHostCallback) return Unsupported("the client's functions take whole arrays");
  return Unsupported(absl::StrCat("custom call ", target, " has no sharding rule"));
}

}  // namespace gangway::rules
