#include "gangway/partition/other_mesh.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace gangway::partition {
namespace {

int64_t SmallestFactor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// The axis in parts of prime size, major to minor.
AxisList PrimeParts(const AxisRef& ref) {
  AxisList parts;
  for (AxisRef rest = ref; rest.size > 1;) {
    const int64_t prime = SmallestFactor(rest.size);
    parts.push_back({rest.axis, rest.pre, prime});
    rest.pre *= prime;
    rest.size /= prime;
  }
  return parts;
}

DimVector CountsOf(const Sharding& sharding) {
  DimVector counts;
  for (int64_t d = 0; d < sharding.rank(); ++d) counts.push_back(sharding.ShardCount(d));
  return counts;
}

// Index of the tile that the device at a position holds, row-major over the dimensions.
int64_t TileAt(const Sharding& sharding, int64_t position) {
  int64_t tile = 0;
  for (const DimSharding& dim : sharding.dims) {
    tile = tile * ProductOf(dim.axes) + CoordinateOf(*sharding.mesh, position, dim.axes);
  }
  return tile;
}

// Devices by the tile they hold.
std::vector<std::vector<int64_t>> Holders(const Sharding& sharding) {
  int64_t tiles = 1;
  for (int64_t count : CountsOf(sharding)) tiles *= count;
  std::vector<std::vector<int64_t>> holders(tiles);
  for (int64_t p = 0; p < sharding.mesh->size(); ++p) {
    holders[TileAt(sharding, p)].push_back(sharding.mesh->DeviceAt(p));
  }
  for (std::vector<int64_t>& devices : holders) std::sort(devices.begin(), devices.end());
  return holders;
}

// Each dimension takes parts of the axes, in the order given, until it has as many as it needs.
std::optional<Sharding> GiveOut(const std::vector<int>& order, const DimVector& counts, const MeshRef& mesh) {
  AxisList free;
  for (int axis : order) {
    const AxisList parts = PrimeParts(FullAxis(*mesh, axis));
    free.insert(free.end(), parts.begin(), parts.end());
  }
  Sharding result = Sharding::Replicated(mesh, static_cast<int64_t>(counts.size())).Closed();
  for (size_t d = 0; d < counts.size(); ++d) {
    AxisList& axes = result.dims[d].axes;
    int64_t left = counts[d];
    for (auto it = free.begin(); left > 1 && it != free.end();) {
      if (left % it->size != 0) {
        ++it;
        continue;
      }
      axes.push_back(*it);
      left /= it->size;
      it = free.erase(it);
    }
    if (left != 1) return std::nullopt;
    MergeSubAxes(&axes);
  }
  return result;
}

}  // namespace

std::vector<Sharding> SplitsInto(const DimVector& counts, const MeshRef& mesh, const Sharding& like) {
  if (CountsOf(like) == counts) {
    Sharding whole = like;
    whole.unreduced.clear();
    return {whole};
  }
  std::vector<int> order(mesh->rank());
  std::iota(order.begin(), order.end(), 0);
  std::vector<Sharding> splits;
  do {
    std::optional<Sharding> split = GiveOut(order, counts, mesh);
    if (split && std::find(splits.begin(), splits.end(), *split) == splits.end()) splits.push_back(*std::move(split));
  } while (order.size() <= 4 && std::next_permutation(order.begin(), order.end()));
  return splits;
}

DevicePairs TilePairs(const Sharding& from, const Sharding& to) {
  const std::vector<std::vector<int64_t>> senders = Holders(from), receivers = Holders(to);
  DevicePairs pairs;
  for (size_t tile = 0; tile < senders.size(); ++tile) {
    std::vector<int64_t> send, receive, keep;
    std::set_intersection(senders[tile].begin(), senders[tile].end(), receivers[tile].begin(), receivers[tile].end(),
                          std::back_inserter(keep));
    std::set_difference(senders[tile].begin(), senders[tile].end(), keep.begin(), keep.end(), std::back_inserter(send));
    std::set_difference(receivers[tile].begin(), receivers[tile].end(), keep.begin(), keep.end(),
                        std::back_inserter(receive));
    for (int64_t device : keep) pairs.emplace_back(device, device);
    for (size_t i = 0; i < send.size(); ++i) pairs.emplace_back(send[i], receive[i]);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

bool InPlace(const DevicePairs& pairs) {
  return std::all_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.first == pair.second; });
}

std::vector<DimVector> MeetingCounts(const Sharding& from, const Sharding& to) {
  const DimVector a = CountsOf(from), b = CountsOf(to);
  // Inside a manual region devices with equal tiles hold different arrays: nothing may be carried between them.
  if (!from.manual.empty() || !to.manual.empty()) return {DimVector(a.size(), 1)};
  DimVector common;
  for (size_t d = 0; d < a.size(); ++d) common.push_back(std::gcd(a[d], b[d]));
  std::vector<DimVector> counts = {a, b, common, DimVector(a.size(), 1)};
  std::vector<DimVector> distinct;
  for (DimVector& each : counts) {
    if (std::find(distinct.begin(), distinct.end(), each) == distinct.end()) distinct.push_back(std::move(each));
  }
  return distinct;
}

}  // namespace gangway::partition
