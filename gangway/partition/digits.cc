#include "gangway/partition/digits.h"

#include <algorithm>
#include <map>
#include <set>

namespace gangway::partition {
namespace {

using Cuts = std::set<int64_t>;  // cumulative products; 1 and the whole are implied

bool IsChain(const Cuts& cuts) {
  int64_t previous = 1;
  for (int64_t cut : cuts) {
    if (cut % previous != 0) return false;
    previous = cut;
  }
  return true;
}

// The parts of `ref` between the cuts of its axis.
AxisList SplitAt(const AxisRef& ref, const Cuts& cuts) {
  AxisList parts;
  int64_t begin = ref.pre;
  const int64_t end = ref.pre * ref.size;
  for (int64_t cut : cuts) {
    if (cut <= begin || cut >= end) continue;
    parts.push_back({ref.axis, begin, cut / begin});
    begin = cut;
  }
  parts.push_back({ref.axis, begin, end / begin});
  return parts;
}

class Refinement {
 public:
  Refinement(const Sharding& from, const Sharding& to) : from_(from), to_(to), axis_cuts_(from.mesh->rank()) {
    for (const Sharding* s : {&from, &to}) {
      for (const DimSharding& dim : s->dims) AddEnds(dim.axes);
      AddEnds(s->unreduced);
    }
  }

  // Splits axes and dimensions until every axis part is one digit wherever it is used. False when the axes' own parts
  // do not nest.
  bool Run(std::vector<int64_t>* incompatible) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Cuts& cuts : axis_cuts_) {
        if (!IsChain(cuts)) return false;
      }
      for (int64_t d = 0; d < from_.rank(); ++d) {
        const Cuts cuts = DimCuts(d);
        if (!IsChain(cuts)) {
          incompatible->push_back(d);
          return true;
        }
        for (const Sharding* s : {&from_, &to_}) changed |= CutAxes(s->dims[d].axes, cuts);
      }
    }
    return true;
  }

  Cuts DimCuts(int64_t d) const {
    Cuts cuts;
    for (const Sharding* s : {&from_, &to_}) {
      int64_t count = 1;
      for (const AxisRef& part : Parts(s->dims[d].axes)) cuts.insert(count *= part.size);
    }
    cuts.erase(1);
    return cuts;
  }

  AxisList Parts(const AxisList& axes) const {
    AxisList parts;
    for (const AxisRef& ref : axes) {
      for (const AxisRef& part : SplitAt(ref, axis_cuts_[ref.axis])) {
        if (part.size > 1) parts.push_back(part);
      }
    }
    return parts;
  }

 private:
  void AddEnds(const AxisList& axes) {
    for (const AxisRef& ref : axes) {
      for (int64_t end : {ref.pre, ref.pre * ref.size}) {
        if (end > 1) axis_cuts_[ref.axis].insert(end);
      }
    }
  }

  bool CutAxes(const AxisList& axes, const Cuts& cuts) {
    bool changed = false;
    int64_t begin = 1;
    for (const AxisRef& ref : axes) {
      for (int64_t cut : cuts) {
        if (cut <= begin || cut >= begin * ref.size) continue;
        if (cut % begin != 0 || ref.size % (cut / begin) != 0) continue;  // the chain test reports it
        changed |= axis_cuts_[ref.axis].insert(ref.pre * (cut / begin)).second;
      }
      begin *= ref.size;
    }
    return changed;
  }

  const Sharding& from_;
  const Sharding& to_;
  std::vector<Cuts> axis_cuts_;
};

int8_t AtomIndex(DigitView* view, const AxisRef& part) {
  auto it = std::find(view->atoms.begin(), view->atoms.end(), part);
  if (it == view->atoms.end()) it = view->atoms.insert(view->atoms.end(), part);
  return static_cast<int8_t>(it - view->atoms.begin());
}

std::vector<int64_t> SplitDims(const Sharding& from, const Sharding& to) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (from.dims[d].axes != to.dims[d].axes) dims.push_back(d);
  }
  return dims;
}

}  // namespace

int64_t DigitView::TileExtent(int64_t dim) const {
  int64_t extent = padded[dim];
  for (const Digit& digit : digits) {
    if (digit.dim == dim) extent /= digit.size;
  }
  return extent;
}

AxisList DigitView::AxesOf(const std::vector<int>& atom_list) const {
  AxisList axes;
  for (int atom : atom_list) axes.push_back(atoms[atom]);
  return axes;
}

DigitResult CommonDigits(const Sharding& from, const Sharding& to, const Shape& shape) {
  DigitResult result;
  Refinement refinement(from, to);
  if (!refinement.Run(&result.incompatible)) result.incompatible = SplitDims(from, to);
  if (!result.incompatible.empty()) return result;

  DigitView& view = result.view;
  view.mesh = from.mesh;
  view.padded = shape.dims();
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const Cuts cuts = refinement.DimCuts(d);
    const int64_t total = cuts.empty() ? 1 : *cuts.rbegin();
    const int64_t tile = (shape.dim(d) + total - 1) / total;
    view.padded[d] = tile * total;
    for (const Sharding* s : {&from, &to}) {
      const int64_t count = ProductOf(s->dims[d].axes);
      if (count > 1 && (shape.dim(d) + count - 1) / count * count != view.padded[d]) {
        if (result.incompatible.empty() || result.incompatible.back() != d) result.incompatible.push_back(d);
      }
    }
    int64_t previous = 1;
    for (int64_t cut : cuts) {
      view.digits.push_back({static_cast<int>(d), cut / previous});
      previous = cut;
    }
  }
  for (const Sharding* s : {&from, &to}) {
    Holders& holders = s == &from ? view.from : view.to;
    holders.assign(view.digits.size(), kLocal);
    size_t digit = 0;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      size_t place = digit;
      for (const AxisRef& part : refinement.Parts(s->dims[d].axes)) holders[place++] = AtomIndex(&view, part);
      while (digit < view.digits.size() && view.digits[digit].dim == d) ++digit;
    }
    uint32_t& unreduced = s == &from ? view.unreduced_from : view.unreduced_to;
    for (const AxisRef& part : refinement.Parts(s->unreduced)) unreduced |= 1u << AtomIndex(&view, part);
  }
  return result;
}

}  // namespace gangway::partition
