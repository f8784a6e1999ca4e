#include "gangway/propagate/affinity.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace gangway::propagate {
namespace {

using hlo::Opcode;

bool IsReduction(const Relation& relation) {
  return relation.kind == Relation::Kind::kFactors && relation.instruction->opcode() == Opcode::kReduce;
}

bool IsProduct(const Relation& relation) {
  return relation.kind == Relation::Kind::kFactors &&
         (relation.instruction->opcode() == Opcode::kDot || relation.instruction->opcode() == Opcode::kConvolution);
}

}  // namespace

Affinity::Affinity(const Graph& graph) {
  int dims = 0;
  for (const Value& value : graph.values()) {
    first_dim_.push_back(dims);
    dims += static_cast<int>(value.shape.rank());
  }
  parent_.resize(dims);
  for (int i = 0; i < dims; ++i) parent_[i] = i;
  Unite(graph);
  Weigh(graph);
  CollectWishes(graph);
}

int Affinity::Find(int dim) const {
  while (parent_[dim] != dim) dim = parent_[dim] = parent_[parent_[dim]];
  return dim;
}

// A merged dimension is the index of its major factor. Dimensions of extent 1 are no index.
void Affinity::Unite(const Graph& graph) {
  auto unite = [&](int a, int b) {
    a = Find(a);
    b = Find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  };
  for (const Relation& relation : graph.relations()) {
    if (relation.kind == Relation::Kind::kToLocal) {
      const int rank = static_cast<int>(graph.values()[relation.values[0]].shape.rank());
      for (int dim = 0; dim < rank; ++dim) unite(IndexOf(relation.values[0], dim), IndexOf(relation.values[1], dim));
      continue;
    }
    for (const RelationFactor& factor : relation.factors) {
      if (factor.kind == rules::FactorKind::kNeedReplication || factor.size == 1) continue;
      int first = -1;
      for (const Use& use : factor.uses) {
        if (use.place != 0) continue;
        const int index = IndexOf(relation.values[use.tensor], use.dim);
        if (first >= 0) unite(first, index);
        first = index;
      }
    }
  }
}

void Affinity::Weigh(const Graph& graph) {
  flops_.assign(parent_.size(), 0.0);
  contracted_.assign(parent_.size(), 0.0);
  reduced_.assign(parent_.size(), 0.0);
  for (const Relation& relation : graph.relations()) {
    const bool is_product = IsProduct(relation);
    if (!is_product && !IsReduction(relation)) continue;
    double flops = 1;
    for (int64_t size : relation.sizes) flops *= static_cast<double>(size);
    std::vector<int> counted;
    for (const RelationFactor& factor : relation.factors) {
      const Use& use = factor.uses.front();
      const int index = Find(IndexOf(relation.values[use.tensor], use.dim));
      if (use.place != 0 || std::find(counted.begin(), counted.end(), index) != counted.end()) continue;
      counted.push_back(index);
      (is_product ? flops_ : reduced_)[index] += flops;
      if (is_product && factor.kind == rules::FactorKind::kReduction) contracted_[index] += flops;
    }
  }
}

void Affinity::CollectWishes(const Graph& graph) {
  wishes_.resize(parent_.size());
  for (size_t value = 0; value < graph.values().size(); ++value) {
    const Value& v = graph.values()[value];
    if (!v.annotated || v.frozen) continue;
    for (int64_t dim = 0; dim < v.shape.rank(); ++dim) {
      AxisList& wishes = wishes_[Find(IndexOf(static_cast<int>(value), dim))];
      for (const AxisRef& ref : v.sharding.dims[dim].axes) {
        if (std::find(wishes.begin(), wishes.end(), ref) == wishes.end()) wishes.push_back(ref);
      }
    }
  }
}

std::vector<IndexClass> Affinity::Classes(const Graph& graph) const {
  std::vector<IndexClass> classes;
  std::vector<int> place(parent_.size(), -1);
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const Value& value = graph.values()[v];
    for (int64_t dim = 0; dim < value.shape.rank(); ++dim) {
      const int id = ClassOf(static_cast<int>(v), dim);
      if (flops_[id] == 0 && reduced_[id] == 0) continue;
      if (place[id] < 0) {
        place[id] = static_cast<int>(classes.size());
        classes.push_back({.id = id,
                           .flops = flops_[id],
                           .reduced = reduced_[id],
                           .annotated = wishes_[id],
                           .example = absl::StrCat("%", value.instruction->name(), " dimension ", dim)});
      }
      IndexClass& index = classes[place[id]];
      index.extent = std::max(index.extent, value.shape.dim(dim));
      for (int64_t other = 0; other < dim; ++other) index.meets_itself |= ClassOf(static_cast<int>(v), other) == id;
    }
  }
  std::erase_if(classes, [](const IndexClass& index) { return index.flops == 0 && !index.meets_itself; });
  std::stable_sort(classes.begin(), classes.end(), [](const IndexClass& a, const IndexClass& b) {
    return std::tie(a.flops, a.reduced) > std::tie(b.flops, b.reduced);
  });
  return classes;
}

bool Affinity::PrefersElsewhere(const Graph& graph, int value, int64_t dim, const AxisRef& axis) const {
  const Value& v = graph.values()[value];
  const int mine = Find(IndexOf(value, dim));
  for (int64_t other = 0; other < v.shape.rank(); ++other) {
    if (other == dim || !v.sharding.dims[other].open) continue;
    const int theirs = Find(IndexOf(value, other));
    if (theirs == mine) continue;  // queries and keys of one sequence: what arrives decides
    if (!Overlaps(wishes_[theirs], axis)) continue;
    if (!graph.MayHave(v.shape.dim(other), v.sharding.ShardCount(other) * axis.size)) continue;
    constexpr double kEqual = 1.1;
    if (flops_[theirs] > flops_[mine] * kEqual) return true;
    if (flops_[theirs] * kEqual < flops_[mine]) continue;
    if (contracted_[theirs] * kEqual < contracted_[mine]) return true;
    if (contracted_[mine] * kEqual >= contracted_[theirs] && other < dim) return true;
  }
  return false;
}

}  // namespace gangway::propagate
