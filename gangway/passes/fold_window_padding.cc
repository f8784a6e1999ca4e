// A pooling's gradient on an array that was padded for it: the padding becomes that of its windows, and the array keeps
// the extent, so the shards, that it had.
#include <limits>

#include "gangway/hlo/builder.h"
#include "gangway/passes/passes.h"
#include "gangway/passes/replace_each.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// The smallest value where the larger is selected, the largest where the smaller is: never selected before another one.
bool IsNeverSelected(const Instruction* value, const Computation& select) {
  while (value->opcode() == Opcode::kBroadcast) value = value->operand(0);
  const auto* constant = value->attr_if<hlo::ConstantAttr>();
  if (constant == nullptr || !IsFloat(value->shape().dtype())) return false;
  const Instruction* root = select.root();
  if (root->opcode() != Opcode::kCompare || root->operand(0) != select.parameter(0) ||
      root->operand(1) != select.parameter(1)) {
    return false;
  }
  const double fill = ElementAsDouble(value->shape().dtype(), constant->literal->data());
  switch (root->attr<hlo::CompareAttr>().direction) {
    case hlo::ComparisonDirection::kGe:
      return fill == -std::numeric_limits<double>::infinity();
    case hlo::ComparisonDirection::kLe:
      return fill == std::numeric_limits<double>::infinity();
    default:
      return false;
  }
}

// Padding at the end only: at the beginning it would be selected before an equal element.
bool PadsOnlyBehind(const Instruction* pad) {
  for (const hlo::PadDim& dim : pad->attr<hlo::PadAttr>().dims) {
    if (dim.low != 0 || dim.interior != 0 || dim.high < 0) return false;
  }
  return true;
}

bool Fold(Instruction* gradient, Builder& builder) {
  Instruction* pad = gradient->operand(0);
  if (pad->opcode() != Opcode::kPad || pad->has_sharding() || gradient->has_sharding() || !PadsOnlyBehind(pad) ||
      !IsNeverSelected(pad->operand(1), *gradient->called()[0])) {
    return false;
  }
  hlo::WindowAttr attr = gradient->attr<hlo::WindowAttr>();
  const auto& dims = pad->attr<hlo::PadAttr>().dims;
  for (size_t d = 0; d < dims.size(); ++d) attr.window[d].pad_high += dims[d].high;
  builder.set_metadata(gradient->metadata());
  Instruction* init = gradient->operand(2);
  Instruction* inner =
      builder.Add(Opcode::kSelectAndScatter, {pad->operand(0), gradient->operand(1), init}, attr, gradient->called());
  gradient->ReplaceAllUsesWith(builder.Pad(inner, init, dims));
  return true;
}

}  // namespace

absl::StatusOr<bool> RunFoldWindowPadding(hlo::Module& module) {
  return ReplaceEach(module, Opcode::kSelectAndScatter, Fold);
}

}  // namespace gangway::passes
