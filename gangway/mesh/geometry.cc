#include "gangway/mesh/geometry.h"

#include <algorithm>

namespace gangway {
namespace {

// Consumes one sharding per leaf from `next`.
Shape ShardShapeFrom(const Shape& shape, const Shardings& shardings, size_t* next) {
  if (shape.IsTuple()) {
    Shape local = shape;
    for (Shape& element : local.mutable_tuple()) element = ShardShapeFrom(element, shardings, next);
    return local;
  }
  const size_t leaf = (*next)++;
  return shape.IsArray() && leaf < shardings.size() ? ShardShape(shape, shardings[leaf]) : shape;
}

}  // namespace

int64_t ShardExtent(int64_t extent, int64_t shards) { return (extent + shards - 1) / shards; }

Shape ShardShape(const Shape& shape, const Sharding& sharding) {
  Shape local = shape;
  for (int64_t i = 0; i < std::min(shape.rank(), sharding.rank()); ++i) {
    local.set_dim(i, ShardExtent(shape.dim(i), sharding.ShardCount(i)));
  }
  return local;
}

Shape ShardShape(const Shape& shape, const Shardings& shardings) {
  size_t next = 0;
  return ShardShapeFrom(shape, shardings, &next);
}

bool IsEven(const Shape& shape, const Sharding& sharding) {
  for (int64_t i = 0; i < sharding.rank(); ++i) {
    if (shape.dim(i) % sharding.ShardCount(i) != 0) return false;
  }
  return true;
}

std::vector<ShardDim> ShardOf(const Shape& shape, const Sharding& sharding, int64_t position) {
  std::vector<ShardDim> shard(sharding.rank());
  for (int64_t i = 0; i < sharding.rank(); ++i) {
    const int64_t extent = ShardExtent(shape.dim(i), sharding.ShardCount(i));
    const int64_t offset = extent * CoordinateOf(*sharding.mesh, position, sharding.dims[i].axes);
    shard[i] = {offset, extent, std::clamp<int64_t>(shape.dim(i) - offset, 0, extent)};
  }
  return shard;
}

std::vector<ShardDim> ShardOfDevice(const Shape& shape, const Sharding& sharding, int64_t device) {
  const bool is_split = sharding.IsMaximal() || !sharding.DimAxes().empty();
  const int64_t position = is_split ? sharding.mesh->PositionOf(device) : 0;
  std::vector<ShardDim> shard = ShardOf(shape, sharding, std::max<int64_t>(position, 0));
  if (position < 0) {
    for (ShardDim& dim : shard) dim.valid = 0;
  }
  return shard;
}

}  // namespace gangway
