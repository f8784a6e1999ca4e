#include "gangway/partition/demands.h"

#include <algorithm>

namespace gangway::partition {

void Demands::Add(const ValueKey& value, const Sharding& sharding, const hlo::Instruction* by) {
  if (value.first == nullptr) return;
  std::vector<Demand>& demands = demands_[value];
  const bool known = std::any_of(demands.begin(), demands.end(),
                                 [&](const Demand& demand) { return demand.by == by && demand.sharding == sharding; });
  if (!known) demands.push_back({sharding, by});
}

std::vector<Sharding> Demands::Of(const ValueKey& value) const {
  std::vector<Sharding> shardings;
  auto it = demands_.find(value);
  if (it == demands_.end()) return shardings;
  for (const Demand& demand : it->second) {
    if (std::find(shardings.begin(), shardings.end(), demand.sharding) == shardings.end())
      shardings.push_back(demand.sharding);
  }
  return shardings;
}

bool Demands::ByOthers(const ValueKey& value, const Sharding& sharding, const hlo::Instruction* by) const {
  auto it = demands_.find(value);
  if (it == demands_.end()) return false;
  return std::any_of(it->second.begin(), it->second.end(),
                     [&](const Demand& demand) { return demand.by != by && demand.sharding == sharding; });
}

}  // namespace gangway::partition
