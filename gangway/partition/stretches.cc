#include "gangway/partition/stretches.h"

#include <algorithm>

namespace gangway::partition {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr int kMaxDepth = 8;
constexpr size_t kMaxStretches = 64;

bool HasUnitStrides(const Instruction& slice) {
  const DimVector& strides = slice.attr<hlo::SliceAttr>().strides;
  return std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 1; });
}

bool HasNoInterior(const Instruction& pad) {
  const auto& dims = pad.attr<hlo::PadAttr>().dims;
  return std::all_of(dims.begin(), dims.end(), [](const hlo::PadDim& dim) { return dim.interior == 0; });
}

// No dimension but `dim` is changed.
bool ChangesOnly(const Instruction& instruction, int64_t dim) {
  const Shape &operand = instruction.operand(0)->shape(), &result = instruction.shape();
  for (int64_t d = 0; d < result.rank(); ++d) {
    if (d == dim) continue;
    if (operand.dim(d) != result.dim(d)) return false;
    if (instruction.opcode() == Opcode::kPad && instruction.attr<hlo::PadAttr>().dims[d] != hlo::PadDim{}) return false;
  }
  if (instruction.opcode() == Opcode::kReverse) return instruction.attr<hlo::DimensionsAttr>().dims == DimVector{dim};
  return true;
}

// The scalar that all elements of `x` are; null when they are not.
const Instruction* ScalarOf(const Instruction& x) {
  return x.opcode() == Opcode::kBroadcast && x.operand(0)->shape().rank() == 0 ? x.operand(0) : nullptr;
}

class Lookup {
 public:
  Lookup(int64_t dim, int64_t extent) : dim_(dim) { result_.extent = extent; }

  // Elements begin .. end-1 of the result are those of `x` from `from` on.
  void Add(const Instruction& x, int64_t begin, int64_t end, int64_t from, int depth) {
    if (begin >= end) return;
    if (depth < kMaxDepth && result_.stretches.size() < kMaxStretches) {
      switch (x.opcode()) {
        case Opcode::kSlice:
          if (!HasUnitStrides(x) || !ChangesOnly(x, dim_)) break;
          return Add(*x.operand(0), begin, end, from + x.attr<hlo::SliceAttr>().starts[dim_], depth + 1);
        case Opcode::kPad:
          if (!HasNoInterior(x) || !ChangesOnly(x, dim_)) break;
          return AddPadded(x, begin, end, from, depth + 1);
        case Opcode::kConcatenate:
          if (x.attr<hlo::DimensionsAttr>().dims[0] != dim_) break;
          return AddJoined(x, begin, end, from, depth + 1);
        case Opcode::kReverse:
          if (!ChangesOnly(x, dim_)) break;
          return AddLeaf({x.operand(0), true, {}}, begin, end, from);
        default:
          if (hlo::IsElementwise(x.opcode()) && AddMade(x, begin, end, from, depth + 1)) return;
          break;
      }
    }
    if (const Instruction* scalar = ScalarOf(x)) return AddLeaf({scalar, false, {}}, begin, end, 0);
    AddLeaf({&x, false, {}}, begin, end, from);
  }

  ArrangedDim Take() { return std::move(result_); }

 private:
  void AddLeaf(ArrangedDim::Source source, int64_t begin, int64_t end, int64_t from) {
    auto& sources = result_.sources;
    auto it = std::find_if(sources.begin(), sources.end(), [&](const ArrangedDim::Source& other) {
      return other.value == source.value && other.mirrored == source.mirrored && other.operands.empty();
    });
    if (it == sources.end() || !source.operands.empty()) it = sources.insert(sources.end(), std::move(source));
    result_.stretches.push_back({static_cast<int>(it - sources.begin()), begin, end, from});
  }

  void AddPadded(const Instruction& pad, int64_t begin, int64_t end, int64_t from, int depth) {
    const int64_t low = pad.attr<hlo::PadAttr>().dims[dim_].low, extent = pad.operand(0)->shape().dim(dim_);
    // Where in the result the array begins and ends.
    const int64_t first = std::clamp(begin + low - from, begin, end);
    const int64_t last = std::clamp(begin + low + extent - from, first, end);
    if (begin < first) AddLeaf({pad.operand(1), false, {}}, begin, first, 0);
    Add(*pad.operand(0), first, last, from + first - begin - low, depth);
    if (last < end) AddLeaf({pad.operand(1), false, {}}, last, end, 0);
  }

  void AddJoined(const Instruction& concatenate, int64_t begin, int64_t end, int64_t from, int depth) {
    int64_t offset = 0;
    for (const Instruction* part : concatenate.operands()) {
      const int64_t extent = part->shape().dim(dim_);
      const int64_t first = std::clamp(begin + offset - from, begin, end);
      const int64_t last = std::clamp(begin + offset + extent - from, begin, end);
      Add(*part, first, last, from + first - begin - offset, depth);
      offset += extent;
    }
  }

  // An elementwise operation nobody else uses, of which at least one operand was looked through.
  bool AddMade(const Instruction& x, int64_t begin, int64_t end, int64_t from, int depth) {
    if (x.users().size() != 1) return false;
    ArrangedDim::Source source{&x, false, {}};
    bool moved = false;
    for (const Instruction* operand : x.operands()) {
      if (operand->shape().rank() == 0) continue;
      Lookup lookup(dim_, result_.extent);
      lookup.Add(*operand, begin, end, from, depth);
      source.operands.push_back(lookup.Take());
      const auto& found = source.operands.back().sources;
      moved |= found.size() != 1 || (found[0].value != operand && found[0].value->shape().rank() > 0);
    }
    if (!moved) return false;
    AddLeaf(std::move(source), begin, end, from);
    return true;
  }

  const int64_t dim_;
  ArrangedDim result_;
};

// `stretches` of a pad's result as stretches of its operand and the fill.
std::vector<Stretch> ThroughPad(const std::vector<Stretch>& stretches, const hlo::PadDim& pad, int64_t extent) {
  std::vector<Stretch> result;
  const auto add = [&](int source, int64_t begin, int64_t end, int64_t from) {
    if (begin < end) result.push_back({source, begin, end, from});
  };
  for (const Stretch& s : stretches) {
    if (s.source != 0) {
      result.push_back(s);
      continue;
    }
    const int64_t first = std::clamp(s.begin + pad.low - s.from, s.begin, s.end);
    const int64_t last = std::clamp(s.begin + pad.low + extent - s.from, first, s.end);
    add(1, s.begin, first, 0);
    add(0, first, last, s.from + first - s.begin - pad.low);
    add(1, last, s.end, 0);
  }
  return result;
}

bool Descend(ArrangedBox* box) {
  const Instruction& x = *box->base;
  const int64_t rank = x.shape().rank();
  switch (x.opcode()) {
    case Opcode::kSlice:
      if (!HasUnitStrides(x)) return false;
      for (int64_t d = 0; d < rank; ++d) {
        for (Stretch& s : box->dims[d]) s.from += s.source == 0 ? x.attr<hlo::SliceAttr>().starts[d] : 0;
      }
      break;
    case Opcode::kPad:
      if (!HasNoInterior(x) || (box->fill != nullptr && box->fill != x.operand(1))) return false;
      box->fill = x.operand(1);
      for (int64_t d = 0; d < rank; ++d) {
        box->dims[d] = ThroughPad(box->dims[d], x.attr<hlo::PadAttr>().dims[d], x.operand(0)->shape().dim(d));
      }
      break;
    case Opcode::kReverse:
      for (int64_t d : x.attr<hlo::DimensionsAttr>().dims) box->mirrored[d] = true;
      break;
    default:
      return false;
  }
  box->base = x.operand(0);
  return true;
}

}  // namespace

bool IsOnlyLookedThrough(const Instruction& slice) {
  if (slice.opcode() != Opcode::kSlice || !HasUnitStrides(slice)) return false;
  return std::all_of(slice.users().begin(), slice.users().end(), [&](const Instruction* user) {
    switch (user->opcode()) {
      case Opcode::kConcatenate:
        return ChangesOnly(slice, user->attr<hlo::DimensionsAttr>().dims[0]);
      case Opcode::kSlice:
        return HasUnitStrides(*user);
      case Opcode::kPad:
        return user->operand(0) == &slice && HasNoInterior(*user);
      case Opcode::kReverse:
        return true;
      default:
        return false;
    }
  });
}

ArrangedDim ArrangedAlong(const Instruction& concatenate, int64_t dim) {
  const int64_t extent = concatenate.shape().dim(dim);
  Lookup lookup(dim, extent);
  lookup.Add(concatenate, 0, extent, 0, 0);
  return lookup.Take();
}

bool ArrangedBox::IsArranged(int64_t dim) const {
  const int64_t extent = base->shape().dim(dim);
  return mirrored[dim] || dims[dim] != std::vector<Stretch>{{0, 0, extent, 0}};
}

std::optional<ArrangedBox> BoxOf(const Instruction& instruction) {
  ArrangedBox box;
  box.base = &instruction;
  box.mirrored.assign(instruction.shape().rank(), false);
  for (int64_t extent : instruction.shape().dims()) box.dims.push_back({{0, 0, extent, 0}});
  bool reversed = false;
  for (int depth = 0; depth < kMaxDepth && !reversed; ++depth) {
    reversed = box.base->opcode() == Opcode::kReverse;
    if (!Descend(&box)) break;
  }
  if (box.base == &instruction) return std::nullopt;
  return box;
}

}  // namespace gangway::partition
