// Which part of an array each device holds.
#pragma once

#include <cstdint>
#include <vector>

#include "gangway/mesh/sharding.h"
#include "gangway/tensor/shape.h"

namespace gangway {

// One device's shard of one dimension, in elements of the whole array. Elements from offset+valid to offset+extent are
// padding.
struct ShardDim {
  int64_t offset = 0;  // may lie past the array's end when the shard is all padding
  int64_t extent = 0;  // the same on every device
  int64_t valid = 0;   // 0 <= valid <= extent

  friend bool operator==(const ShardDim&, const ShardDim&) = default;
};

// Extent of every device's shard of a dimension of `extent` elements in `shards` shards: ceil(extent/shards).
int64_t ShardExtent(int64_t extent, int64_t shards);

// The per-device shape: each dimension divided, rounded up; layout kept. Tuples take one sharding per leaf.
Shape ShardShape(const Shape& shape, const Sharding& sharding);
Shape ShardShape(const Shape& shape, const Shardings& shardings);

// True when every dimension's shard count divides its extent.
bool IsEven(const Shape& shape, const Sharding& sharding);

// What the device at a mesh position holds, per dimension.
std::vector<ShardDim> ShardOf(const Shape& shape, const Sharding& sharding, int64_t position);

// What a device holds, by its logical number: that differs from its position where the mesh orders devices. Nothing
// when the mesh is without it; all of what is not split, whatever the mesh.
std::vector<ShardDim> ShardOfDevice(const Shape& shape, const Sharding& sharding, int64_t device);

}  // namespace gangway
