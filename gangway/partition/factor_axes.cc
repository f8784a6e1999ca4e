// Between the sharding of a value and the axes of the factors its dimensions are made of.
#include "gangway/partition/op_plan.h"

namespace gangway::partition {

using rules::OpRule;

std::vector<AxisList> ToFactors(const OpRule& rule, const rules::ValueFactors& dims, const Sharding& sharding) {
  std::vector<AxisList> result(rule.factors.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const AxisList& axes = sharding.dims[d].axes;
    if (axes.empty() || dims[d].empty()) continue;
    if (dims[d].size() == 1) {
      result[dims[d][0]] = axes;
      continue;
    }
    size_t place = 0;
    int64_t room = rule.factors[dims[d][0]].size;
    for (AxisRef ref : axes) {
      while (ref.size > 1 && place < dims[d].size()) {
        if (room == 1) {
          if (++place == dims[d].size()) break;
          room = rule.factors[dims[d][place]].size;
          continue;
        }
        if (room % ref.size == 0) {
          result[dims[d][place]].push_back(ref);
          room /= ref.size;
          ref.size = 1;
        } else if (ref.size % room == 0) {
          result[dims[d][place]].push_back({ref.axis, ref.pre, room});
          ref.pre *= room;
          ref.size /= room;
          room = 1;
        } else {
          place = dims[d].size();
        }
      }
    }
  }
  return result;
}

bool FromFactors(const OpRule& rule, const rules::ValueFactors& dims, const std::vector<AxisList>& axes,
                 const MeshRef& mesh, Sharding* sharding) {
  *sharding = Sharding::Replicated(mesh, static_cast<int64_t>(dims.size())).Closed();
  for (size_t d = 0; d < dims.size(); ++d) {
    AxisList& list = sharding->dims[d].axes;
    bool full = true;
    for (int factor : dims[d]) {
      const int64_t count = ProductOf(axes[factor]);
      if (count > 1 && !full) return false;
      if (dims[d].size() > 1 && rule.factors[factor].size % count != 0) return false;
      list.insert(list.end(), axes[factor].begin(), axes[factor].end());
      full = full && count == rule.factors[factor].size;
    }
    MergeSubAxes(&list);
  }
  return true;
}

}  // namespace gangway::partition
