// One relation applied: its values take over from each other what they can.
#pragma once

#include <functional>
#include <vector>

#include "gangway/propagate/affinity.h"
#include "gangway/propagate/graph.h"

namespace gangway::propagate {

struct StepLimits {
  int stage = 0;                       // factors up to this one
  int priority = 0;                    // user priorities up to this one give and take
  const Affinity* affinity = nullptr;  // null: an axis goes to whichever dimension asks first
};

// Told of every change: the value, its dimension, the axes appended, the value they were taken over from.
using ChangeCallback = std::function<void(int value, int64_t dim, const AxisList& added, int from)>;

// Axes of a merged dimension dealt out to its factors, major to minor. The last factor takes all that is left; one
// before it takes no more than its size, a larger axis is split. What cannot be dealt out is dropped.
std::vector<AxisList> AxesOfFactors(const AxisList& axes, const std::vector<int64_t>& sizes);

// Extends every dimension that has a factor to the longest list of axes found on that factor, as far as openness, axes
// in use, extents and limits allow. Axes are only ever appended.
void Apply(Graph& graph, const Relation& relation, const StepLimits& limits, const ChangeCallback& changed);

// Pairs of values that disagree about a factor: neither list of axes is a beginning of the other.
struct Disagreement {
  int kept = 0, refused = 0;  // values
  AxisList kept_axes, refused_axes;
};
std::vector<Disagreement> Disagreements(const Graph& graph, const Relation& relation);

}  // namespace gangway::propagate
