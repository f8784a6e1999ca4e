// The sum of two arrays padded with zeros that do not overlap and leave nothing out is their concatenation. This is
// what the gradient of a roll or of a split is written as; as a concatenation it is one movement of elements.
#include <utility>

#include "gangway/hlo/builder.h"
#include "gangway/hlo/splat.h"
#include "gangway/passes/passes.h"

namespace gangway::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsZeroPad(const Instruction* i) {
  if (i->opcode() != Opcode::kPad || i->has_sharding() || i->users().size() != 1) return false;
  if (!hlo::IsSplat(i->operand(1), 0)) return false;
  for (const hlo::PadDim& dim : i->attr<hlo::PadAttr>().dims) {
    if (dim.interior != 0 || dim.low < 0 || dim.high < 0) return false;
  }
  return true;
}

bool ArePartsOfOne(const Instruction* a, const Instruction* b) {
  return a->opcode() == Opcode::kSlice && b->opcode() == Opcode::kSlice && a->operand(0) == b->operand(0);
}

// The one dimension along which `first` lies before `second`, and both fill it; -1 when there is none.
int64_t JoinedDim(const Instruction* first, const Instruction* second) {
  const std::vector<hlo::PadDim>&a = first->attr<hlo::PadAttr>().dims, &b = second->attr<hlo::PadAttr>().dims;
  int64_t joined = -1;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] == hlo::PadDim{} && b[d] == hlo::PadDim{}) continue;
    const int64_t extent = first->operand(0)->shape().dim(static_cast<int64_t>(d));
    if (joined >= 0 || a[d].low != 0 || b[d].high != 0 || b[d].low != extent) return -1;
    joined = static_cast<int64_t>(d);
  }
  return joined;
}

bool RunOn(hlo::Computation& computation) {
  std::vector<Instruction*> sums;
  for (const auto& i : computation.instructions()) {
    if (i->opcode() == Opcode::kAdd && !i->has_sharding() && i->control_predecessors().empty()) sums.push_back(i.get());
  }
  hlo::Builder builder(&computation);
  bool changed = false;
  for (Instruction* sum : sums) {
    Instruction *first = sum->operand(0), *second = sum->operand(1);
    if (!IsZeroPad(first) || !IsZeroPad(second) || !ArePartsOfOne(first->operand(0), second->operand(0))) continue;
    int64_t dim = JoinedDim(first, second);
    if (dim < 0) {
      std::swap(first, second);
      dim = JoinedDim(first, second);
    }
    if (dim < 0) continue;
    builder.set_metadata(sum->metadata());
    sum->ReplaceAllUsesWith(builder.Concatenate({first->operand(0), second->operand(0)}, dim));
    changed = true;
  }
  if (!changed) return false;
  computation.RemoveDead();
  computation.SortTopologically();
  return true;
}

}  // namespace

absl::StatusOr<bool> RunJoinPads(hlo::Module& module) {
  bool changed = false;
  for (const auto& computation : module.computations()) changed |= RunOn(*computation);
  return changed;
}

}  // namespace gangway::passes
