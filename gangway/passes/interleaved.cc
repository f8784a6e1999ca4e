#include "gangway/passes/interleaved.h"

#include "gangway/hlo/splat.h"

namespace gangway::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// The dimension that a pad spreads out by one; -1 when it does anything else.
int64_t SpreadDim(const Instruction* pad, int64_t low) {
  if (pad->opcode() != Opcode::kPad || !hlo::IsSplat(pad->operand(1), 0)) return -1;
  int64_t dim = -1;
  const auto& dims = pad->attr<hlo::PadAttr>().dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == hlo::PadDim{}) continue;
    if (dim >= 0 || dims[d].interior != 1 || dims[d].low != low || dims[d].high < 0) return -1;
    dim = static_cast<int64_t>(d);
  }
  return dim;
}

}  // namespace

bool IsStrided(const Instruction* x, const Instruction* of, int64_t dim, int64_t first, int64_t stride) {
  const int64_t count = x->shape().dim(dim);
  if (x == of) return first == 0 && (stride == 1 || count == 1);
  const auto* slice = x->attr_if<hlo::SliceAttr>();
  if (slice == nullptr || x->operand(0) != of || slice->starts[dim] != first) return false;
  if (count > 1 && (slice->strides.empty() ? 1 : slice->strides[dim]) != stride) return false;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (d != dim && x->shape().dim(d) != of->shape().dim(d)) return false;
  }
  return true;
}

std::optional<Interleaved> AsInterleaved(const Instruction* x) {
  if (x->opcode() != Opcode::kAdd && x->opcode() != Opcode::kOr) return std::nullopt;
  Interleaved found;
  found.dim = SpreadDim(x->operand(0), 0);
  if (found.dim < 0 || SpreadDim(x->operand(1), 1) != found.dim) return std::nullopt;
  Instruction* even = x->operand(0)->operand(0);
  found.odd = x->operand(1)->operand(0);
  const int64_t extent = x->shape().dim(found.dim);
  if (even->shape().dim(found.dim) != (extent + 1) / 2 || found.odd->shape().dim(found.dim) != extent / 2) {
    return std::nullopt;
  }
  const Instruction* first = even;
  if (even->opcode() == Opcode::kConcatenate && even->operand_count() == 2) {
    if (even->attr<hlo::DimensionsAttr>().dims[0] != found.dim) return std::nullopt;
    first = even->operand(0);
    found.rest = even->operand(1);
  }
  if (first->opcode() != Opcode::kSlice || first->shape().dim(found.dim) != 1) return std::nullopt;
  if (found.rest == nullptr && even->shape().dim(found.dim) != 1) return std::nullopt;
  found.elements = first->operand(0);
  if (!IsStrided(first, found.elements, found.dim, 0, 1)) return std::nullopt;
  if (!Shape::Compatible(found.elements->shape(), x->shape())) return std::nullopt;
  return found;
}

}  // namespace gangway::passes
