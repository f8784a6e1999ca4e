#include "gangway/propagate/step.h"

#include <algorithm>
#include <numeric>

namespace gangway::propagate {

std::vector<AxisList> AxesOfFactors(const AxisList& axes, const std::vector<int64_t>& sizes) {
  std::vector<AxisList> dealt(sizes.size());
  size_t factor = 0;
  int64_t left = sizes.empty() ? 1 : sizes[0];
  for (AxisRef ref : axes) {
    while (ref.size > 1) {
      while (left == 1 && factor + 1 < sizes.size()) left = sizes[++factor];
      if (factor + 1 == sizes.size()) {  // uneven shards are fine at the minor end
        dealt[factor].push_back(ref);
        break;
      }
      const int64_t take = std::gcd(left, ref.size);
      if (take > 1) dealt[factor].push_back({ref.axis, ref.pre, take});
      if (take != ref.size && take != left) return dealt;
      left /= take;
      ref = {ref.axis, ref.pre * take, ref.size / take};
    }
  }
  for (AxisList& list : dealt) MergeSubAxes(&list);
  return dealt;
}

namespace {

bool IsBeginning(const AxisList& shorter, const AxisList& longer) { return CommonPrefix(shorter, longer) == shorter; }

class Step {
 public:
  Step(Graph& graph, const Relation& relation, const StepLimits& limits, const ChangeCallback& changed)
      : graph_(graph), relation_(relation), limits_(limits), changed_(changed) {}

  // Factors that want one axis: the one of the larger array comes first, for the smaller is cheaper to gather.
  void Factors() {
    std::vector<std::pair<int64_t, const RelationFactor*>> order;
    for (const RelationFactor& factor : relation_.factors) {
      if (factor.stage > limits_.stage) continue;
      const int from = Longest(factor).first;
      if (from >= 0) order.emplace_back(graph_.values()[from].shape.ByteSize(), &factor);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [bytes, factor] : order) Spread(*factor);
  }

  // Along manual axes the global value is split as the boundary says; what follows them is the local value's sharding.
  void ToLocal() {
    const int global = relation_.values[0], local = relation_.values[1];
    const Value &g = graph_.values()[global], &l = graph_.values()[local];
    if (g.frozen || l.frozen) return;
    AxisList manual;
    for (const AxisRef& ref : l.sharding.manual) {
      if (!Contains(g.sharding.manual, ref)) manual.push_back(ref);
    }
    for (int64_t dim = 0; dim < g.shape.rank(); ++dim) {
      if (!Visible(global, dim) || !Visible(local, dim)) continue;
      AxisList outer, inner;
      for (const AxisRef& ref : g.sharding.dims[dim].axes) (Contains(manual, ref) ? outer : inner).push_back(ref);
      const AxisList& mine = l.sharding.dims[dim].axes;
      if (IsBeginning(mine, inner)) Extend(local, dim, l.shape.dim(dim), RemovePrefix(inner, mine), global);
      if (IsBeginning(inner, l.sharding.dims[dim].axes)) {
        Extend(global, dim, g.shape.dim(dim), RemovePrefix(l.sharding.dims[dim].axes, inner), local);
      }
    }
  }

  std::vector<Disagreement> FindDisagreements() {
    std::vector<Disagreement> found;
    for (const RelationFactor& factor : relation_.factors) {
      if (factor.kind == rules::FactorKind::kNeedReplication) continue;
      const auto [from, longest] = Longest(factor);
      if (longest.empty()) continue;  // axes of size 1 at most: nobody is refused anything
      for (const Use& use : factor.uses) {
        const int value = relation_.values[use.tensor];
        const AxisList axes = AxesOf(use);
        if (graph_.values()[value].frozen || IsBeginning(axes, longest)) continue;
        found.push_back({from, value, longest, axes});
      }
    }
    return found;
  }

 private:
  Value& At(const Use& use) { return graph_.values()[relation_.values[use.tensor]]; }
  const rules::DimFactors& FactorsAt(const Use& use) const { return relation_.factors_of[use.tensor][use.dim]; }
  std::vector<int64_t> SizesAt(const Use& use) const {
    std::vector<int64_t> sizes;
    for (int factor : FactorsAt(use)) sizes.push_back(relation_.sizes[factor]);
    return sizes;
  }

  bool Visible(int value, int64_t dim) const {
    const Value& v = graph_.values()[value];
    return !v.frozen && v.sharding.dims[dim].priority.value_or(0) <= limits_.priority;
  }

  AxisList AxesOf(const Use& use) {
    const AxisList& axes = At(use).sharding.dims[use.dim].axes;
    if (axes.empty() || FactorsAt(use).size() == 1) return axes;
    return AxesOfFactors(axes, SizesAt(use))[use.place];
  }

  // The value that has most shards of the factor, and its axes; between equals the larger array, which is dearer to
  // move.
  std::pair<int, AxisList> Longest(const RelationFactor& factor) {
    int from = -1;
    AxisList longest;
    for (const Use& use : factor.uses) {
      const int value = relation_.values[use.tensor];
      if (!Visible(value, use.dim) || At(use).sharding.dims[use.dim].axes.empty()) continue;
      AxisList axes = AxesOf(use);
      const int64_t shards = ProductOf(axes), most = ProductOf(longest);
      if (shards < most || shards == 1) continue;
      if (shards == most && At(use).shape.ByteSize() <= graph_.values()[from].shape.ByteSize()) continue;
      longest = std::move(axes);
      from = value;
    }
    return {from, std::move(longest)};
  }

  void Spread(const RelationFactor& factor) {
    const auto [from, longest] = Longest(factor);
    if (longest.empty()) return;
    for (const Use& use : factor.uses) {
      const int value = relation_.values[use.tensor];
      if (!Visible(value, use.dim) || !At(use).sharding.dims[use.dim].open) continue;
      if (use.tensor == 0 ? !relation_.backward : !relation_.forward) continue;
      const AxisList axes = AxesOf(use);
      if (axes.size() == longest.size() && axes == longest) continue;
      if (!IsBeginning(axes, longest) || !CanAppendAt(use)) continue;
      const bool alone = FactorsAt(use).size() == 1;
      const int64_t extent = alone ? At(use).shape.dim(use.dim) : factor.size;
      Extend(value, use.dim, extent, RemovePrefix(longest, axes), from, alone ? 1 : ProductOf(axes));
    }
  }

  // Appending to a merged dimension reaches a factor only when those before it are split to the last element and those
  // behind it not at all.
  bool CanAppendAt(const Use& use) {
    const std::vector<int64_t> sizes = SizesAt(use);
    if (sizes.size() == 1) return true;
    const std::vector<AxisList> dealt = AxesOfFactors(At(use).sharding.dims[use.dim].axes, sizes);
    for (int place = 0; place < static_cast<int>(sizes.size()); ++place) {
      if (place < use.place && ProductOf(dealt[place]) != sizes[place]) return false;
      if (place > use.place && !dealt[place].empty()) return false;
    }
    return true;
  }

  // Appends what is possible of `axes` to a dimension; `extent` is what they split. A merged dimension's factor, which
  // had `split` shards, takes even shards only, and so does what clients hold.
  void Extend(int value, int64_t dim, int64_t extent, const AxisList& axes, int from, int64_t split = 1) {
    Value& v = graph_.values()[value];
    DimSharding& target = v.sharding.dims[dim];
    if (!target.open) return;
    AxisList added;
    const bool alone = extent == v.shape.dim(dim);
    int64_t shards = alone ? ProductOf(target.axes) : split;
    for (const AxisRef& ref : axes) {
      shards *= ref.size;
      if ((v.even || !alone) && extent % shards != 0) break;
      if (!graph_.MayHave(extent, shards)) {
        graph_.NoteRefused(extent);
        break;
      }
      if (Overlaps(v.sharding.UsedAxes(), ref)) break;
      if (limits_.affinity != nullptr && limits_.affinity->PrefersElsewhere(graph_, value, dim, ref)) break;
      target.axes.push_back(ref);
      added.push_back(ref);
    }
    if (added.empty()) return;
    MergeSubAxes(&target.axes);
    changed_(value, dim, added, from);
  }

  Graph& graph_;
  const Relation& relation_;
  const StepLimits& limits_;
  const ChangeCallback& changed_;
};

}  // namespace

void Apply(Graph& graph, const Relation& relation, const StepLimits& limits, const ChangeCallback& changed) {
  Step step(graph, relation, limits, changed);
  if (relation.kind == Relation::Kind::kToLocal) {
    step.ToLocal();
  } else {
    step.Factors();
  }
}

std::vector<Disagreement> Disagreements(const Graph& graph, const Relation& relation) {
  if (relation.kind != Relation::Kind::kFactors) return {};
  const StepLimits all{.stage = 3, .priority = INT32_MAX, .affinity = nullptr};
  const ChangeCallback none = [](int, int64_t, const AxisList&, int) {};
  return Step(const_cast<Graph&>(graph), relation, all, none).FindDisagreements();
}

}  // namespace gangway::propagate
