#include <algorithm>

#include "gangway/passes/simplify_rules.h"

namespace gangway::passes {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;
using Simpler = std::optional<Instruction*>;

struct Range {
  DimVector starts, limits, strides;
};

Range RangeOf(const Instruction* slice) {
  const auto& attr = slice->attr<hlo::SliceAttr>();
  return {attr.starts, attr.limits, attr.strides.empty() ? DimVector(attr.starts.size(), 1) : attr.strides};
}

Instruction* Cut(Builder& b, Instruction* x, const Range& range) {
  return b.Slice(x, range.starts, range.limits, range.strides);
}

Simpler SliceOfAll(Builder&, Instruction* i) {
  if (!Shape::Compatible(i->shape(), i->operand(0)->shape())) return std::nullopt;
  return i->operand(0);
}

Simpler SliceOfSlice(Builder& b, Instruction* i) {
  Instruction* inner = i->operand(0);
  if (inner->opcode() != Opcode::kSlice) return std::nullopt;
  Range outer = RangeOf(i), of = RangeOf(inner), both;
  for (size_t d = 0; d < outer.starts.size(); ++d) {
    both.strides.push_back(outer.strides[d] * of.strides[d]);
    both.starts.push_back(of.starts[d] + outer.starts[d] * of.strides[d]);
    // One past the last element that is taken.
    int64_t count = i->shape().dim(d);
    both.limits.push_back(count == 0 ? both.starts[d] : both.starts[d] + (count - 1) * both.strides[d] + 1);
  }
  return Cut(b, inner->operand(0), both);
}

// A slice that lies inside one part of a concatenation is a slice of that part; one over whole parts joins only those.
Simpler SliceOfConcatenate(Builder& b, Instruction* i) {
  Instruction* whole = i->operand(0);
  if (whole->opcode() != Opcode::kConcatenate) return std::nullopt;
  int64_t dim = whole->attr<hlo::DimensionsAttr>().dims.front(), from = 0;
  Range range = RangeOf(i);
  if (range.limits[dim] <= range.starts[dim]) return std::nullopt;
  for (Instruction* part : whole->operands()) {
    int64_t to = from + part->shape().dim(dim);
    if (range.starts[dim] >= from && range.limits[dim] <= to) {
      range.starts[dim] -= from;
      range.limits[dim] -= from;
      return Cut(b, part, range);
    }
    from = to;
  }
  return std::nullopt;
}

// What is cut out of a padded array and holds no padding.
Simpler SliceOfPad(Builder& b, Instruction* i) {
  Instruction* pad = i->operand(0);
  if (pad->opcode() != Opcode::kPad) return std::nullopt;
  const std::vector<hlo::PadDim>& dims = pad->attr<hlo::PadAttr>().dims;
  Range range = RangeOf(i);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].interior != 0) return std::nullopt;
    range.starts[d] -= dims[d].low;
    range.limits[d] -= dims[d].low;
    if (range.starts[d] < 0 || range.limits[d] > pad->operand(0)->shape().dim(d)) return std::nullopt;
  }
  return Cut(b, pad->operand(0), range);
}

Simpler SliceOfScalarBroadcast(Builder& b, Instruction* i) {
  Instruction* inner = i->operand(0);
  if (inner->opcode() != Opcode::kBroadcast || inner->operand(0)->shape().rank() != 0) return std::nullopt;
  return b.BroadcastScalar(inner->operand(0), i->shape());
}

std::optional<int64_t> ConstantIndex(const Instruction* i) {
  const auto* constant = i->attr_if<hlo::ConstantAttr>();
  if (constant == nullptr || !IsInteger(i->shape().dtype())) return std::nullopt;
  int64_t value = ElementAsInt64(i->shape().dtype(), constant->literal->data());
  if (i->shape().dtype() == DType::kU64 && value < 0) return std::numeric_limits<int64_t>::max();
  return value;
}

// Starts are moved inside, as the operation does; a block as large as the array can only start at 0.
Simpler DynamicSliceAtConstant(Builder& b, Instruction* i) {
  Instruction* x = i->operand(0);
  const DimVector& sizes = i->attr<hlo::DynamicSliceAttr>().sizes;
  Range range;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    int64_t room = x->shape().dim(d) - sizes[d];
    std::optional<int64_t> start = room == 0 ? 0 : ConstantIndex(i->operand(1 + d));
    if (!start.has_value()) return std::nullopt;
    range.starts.push_back(std::clamp<int64_t>(*start, 0, room));
    range.limits.push_back(range.starts[d] + sizes[d]);
  }
  range.strides = DimVector(sizes.size(), 1);
  return Cut(b, x, range);
}

Simpler DynamicSliceOfScalarBroadcast(Builder& b, Instruction* i) { return SliceOfScalarBroadcast(b, i); }

Simpler UpdateOfAll(Builder&, Instruction* i) {
  if (!Shape::Compatible(i->operand(1)->shape(), i->shape())) return std::nullopt;
  return i->operand(1);
}

Simpler PadOfNothing(Builder&, Instruction* i) {
  for (const hlo::PadDim& dim : i->attr<hlo::PadAttr>().dims) {
    if (dim != hlo::PadDim{}) return std::nullopt;
  }
  return i->operand(0);
}

// Only cut away: a slice.
Simpler PadThatCuts(Builder& b, Instruction* i) {
  Range range;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const hlo::PadDim& dim = i->attr<hlo::PadAttr>().dims[d];
    if (dim.low > 0 || dim.high > 0 || dim.interior != 0) return std::nullopt;
    range.starts.push_back(-dim.low);
    range.limits.push_back(i->operand(0)->shape().dim(d) + dim.high);
  }
  range.strides = DimVector(range.starts.size(), 1);
  return Cut(b, i->operand(0), range);
}

Simpler ConcatenateOfOne(Builder&, Instruction* i) {
  if (i->operand_count() != 1) return std::nullopt;
  return i->operand(0);
}

Simpler ConcatenateWithoutEmpty(Builder& b, Instruction* i) {
  int64_t dim = i->attr<hlo::DimensionsAttr>().dims.front();
  std::vector<Instruction*> parts;
  for (Instruction* part : i->operands()) {
    if (part->shape().dim(dim) != 0) parts.push_back(part);
  }
  if (parts.empty() || static_cast<int64_t>(parts.size()) == i->operand_count()) return std::nullopt;
  return b.Concatenate(std::move(parts), dim);
}

// `right` continues `left` along `dim` in the same array.
bool Continues(const Instruction* left, const Instruction* right, int64_t dim) {
  if (left->opcode() != Opcode::kSlice || right->opcode() != Opcode::kSlice) return false;
  if (left->operand(0) != right->operand(0)) return false;
  Range a = RangeOf(left), c = RangeOf(right);
  if (a.strides != DimVector(a.strides.size(), 1) || c.strides != a.strides || a.limits[dim] != c.starts[dim])
    return false;
  a.starts[dim] = c.starts[dim] = 0;
  a.limits[dim] = c.limits[dim] = 0;
  return a.starts == c.starts && a.limits == c.limits;
}

Simpler ConcatenateOfNeighbours(Builder& b, Instruction* i) {
  int64_t dim = i->attr<hlo::DimensionsAttr>().dims.front();
  std::vector<Instruction*> parts;
  for (Instruction* part : i->operands()) {
    if (!parts.empty() && Continues(parts.back(), part, dim)) {
      Range range = RangeOf(parts.back());
      range.limits[dim] = RangeOf(part).limits[dim];
      parts.back() = Cut(b, part->operand(0), range);
    } else {
      parts.push_back(part);
    }
  }
  if (static_cast<int64_t>(parts.size()) == i->operand_count()) return std::nullopt;
  return parts.size() == 1 ? parts.front() : b.Concatenate(std::move(parts), dim);
}

constexpr OpRule kRules[] = {
    {Opcode::kSlice, SliceOfAll},
    {Opcode::kSlice, SliceOfSlice},
    {Opcode::kSlice, SliceOfConcatenate},
    {Opcode::kSlice, SliceOfPad},
    {Opcode::kSlice, SliceOfScalarBroadcast},
    {Opcode::kDynamicSlice, DynamicSliceAtConstant},
    {Opcode::kDynamicSlice, DynamicSliceOfScalarBroadcast},
    {Opcode::kDynamicUpdateSlice, UpdateOfAll},
    {Opcode::kPad, PadOfNothing},
    {Opcode::kPad, PadThatCuts},
    {Opcode::kConcatenate, ConcatenateOfOne},
    {Opcode::kConcatenate, ConcatenateWithoutEmpty},
    {Opcode::kConcatenate, ConcatenateOfNeighbours},
};

}  // namespace

absl::Span<const OpRule> SliceRules() { return kRules; }

}  // namespace gangway::passes
