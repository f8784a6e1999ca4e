#include "gangway/cost/collective_time.h"

#include <algorithm>
#include <map>
#include <vector>

#include "gangway/cost/collective_bytes.h"

namespace gangway::cost {
namespace {

using hlo::Opcode;

// Of the group that is spread widest.
struct Spread {
  int64_t islands = 1;
  int64_t devices_per_island = 1;
};

Spread SpreadOf(const std::vector<std::vector<int64_t>>& groups, int64_t island_devices) {
  Spread widest;
  for (const std::vector<int64_t>& group : groups) {
    std::map<int64_t, int64_t> members;
    for (int64_t device : group) ++members[device / island_devices];
    widest.islands = std::max(widest.islands, static_cast<int64_t>(members.size()));
    for (const auto& [island, count] : members) {
      widest.devices_per_island = std::max(widest.devices_per_island, count);
    }
  }
  return widest;
}

bool CrossesIslands(const hlo::CollectiveAttr& attr, int64_t island_devices) {
  return std::any_of(attr.source_target_pairs.begin(), attr.source_target_pairs.end(),
                     [&](const auto& pair) { return pair.first / island_devices != pair.second / island_devices; });
}

// Which part of what a device receives comes from its own island.
double ShareInside(Opcode kind, const hlo::CollectiveAttr& attr, int64_t num_devices, int64_t island_devices) {
  if (island_devices == 0) return 1;
  if (kind == Opcode::kCollectivePermute) return CrossesIslands(attr, island_devices) ? 0 : 1;
  const Spread spread = SpreadOf(attr.groups.Expand(num_devices), island_devices);
  if (spread.islands == 1) return 1;
  const double inside = static_cast<double>(spread.devices_per_island);
  const double all = inside * static_cast<double>(spread.islands);
  switch (kind) {
    case Opcode::kAllReduce:
    case Opcode::kAllGather:
    case Opcode::kReduceScatter:
      // (g - 1) / g of the whole inside and (m - 1) / m of a g-th between: together (n - 1) / n, as in one ring.
      return ((inside - 1) / inside) / ((all - 1) / all);
    case Opcode::kAllToAll:
      return (inside - 1) / (all - 1);
    default:
      return 0;
  }
}

double Seconds(double bytes, const LinkModel& link) {
  return bytes == 0 ? 0 : link.latency_seconds + bytes / link.bytes_per_second;
}

}  // namespace

CollectiveTime TimeOf(const hlo::Instruction& collective, int64_t num_devices, const Machine& machine) {
  const std::optional<Opcode> kind = CollectiveKind(collective.opcode());
  if (!kind.has_value()) return {};
  const CollectiveTraffic traffic = TrafficOf(collective, num_devices);
  if (traffic.group_size <= 1) return {};
  const double share = ShareInside(*kind, collective.attr<hlo::CollectiveAttr>(), num_devices, machine.island_devices);
  return {Seconds(share * traffic.bytes_received, machine.link),
          Seconds((1 - share) * traffic.bytes_received, machine.network)};
}

}  // namespace gangway::cost
