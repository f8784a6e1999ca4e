#include "gangway/partition/shard_pairs.h"

namespace gangway::partition {
namespace {

// The position whose coordinate along `axes` is `to` where this one's is `from`.
int64_t Moved(const Mesh& mesh, const AxisList& axes, int64_t position, int64_t from, int64_t to) {
  for (size_t i = axes.size(); i-- > 0;) {
    position += (to % axes[i].size - from % axes[i].size) * StrideOf(mesh, axes[i]);
    from /= axes[i].size;
    to /= axes[i].size;
  }
  return position;
}

}  // namespace

DevicePairs ShardPairs(const Mesh& mesh, const AxisList& axes, const std::vector<ShardMove>& moves) {
  std::vector<int64_t> sender(ProductOf(axes), -1);  // by receiver
  for (const ShardMove& move : moves) sender[move.receiver] = move.sender;
  DevicePairs pairs;
  for (int64_t position = 0; position < mesh.size(); ++position) {
    const int64_t place = CoordinateOf(mesh, position, axes);
    if (sender[place] < 0) continue;
    pairs.push_back({mesh.DeviceAt(Moved(mesh, axes, position, place, sender[place])), mesh.DeviceAt(position)});
  }
  return pairs;
}

DevicePairs ShiftPairs(const Mesh& mesh, const AxisList& axes, int64_t shift) {
  std::vector<ShardMove> moves;
  const int64_t shards = ProductOf(axes);
  for (int64_t k = 0; k < shards; ++k) {
    if (k + shift >= 0 && k + shift < shards) moves.push_back({k + shift, k});
  }
  return ShardPairs(mesh, axes, moves);
}

}  // namespace gangway::partition
