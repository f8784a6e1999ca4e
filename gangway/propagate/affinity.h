// Which index of the program a dimension is, and which index an axis serves best.
#pragma once

#include <cstdint>
#include <vector>

#include "gangway/propagate/graph.h"

namespace gangway::propagate {

// Dimensions that are one index through the whole program (batch, sequence, model, heads ...) are one class: the
// classes of all factors, united. Where two dimensions of one value could use an axis, because annotations put it on
// both of their classes (batch over `data`, and weights over `data` too), the class that takes part in more arithmetic
// gets it; between equals (within a tenth) the one that is contracted in less of it, then the major dimension. That is
// what keeps the axis of fully sharded weights off the activations, in whatever order values are visited.
class Affinity {
 public:
  explicit Affinity(const Graph& graph);

  // The class of a dimension.
  int ClassOf(int value, int64_t dim) const { return Find(IndexOf(value, dim)); }
  // PropagationReport::indices.
  std::vector<IndexClass> Classes(const Graph& graph) const;

  // Should `axis` rather go to another dimension of the value than to `dim`?
  bool PrefersElsewhere(const Graph& graph, int value, int64_t dim, const AxisRef& axis) const;

 private:
  int Find(int dim) const;
  int IndexOf(int value, int64_t dim) const { return first_dim_[value] + static_cast<int>(dim); }
  void Unite(const Graph& graph);
  void Weigh(const Graph& graph);
  void CollectWishes(const Graph& graph);

  std::vector<int> first_dim_;       // of each value, in one numbering of all dimensions
  mutable std::vector<int> parent_;  // union-find with path halving
  std::vector<double> flops_;        // by class
  std::vector<double> contracted_;   // by class: those of products that contract it
  std::vector<double> reduced_;      // by class: elements of reductions
  std::vector<AxisList> wishes_;     // by class: axes that annotations put there
};

}  // namespace gangway::propagate
