#include "tests/equivalence/shards.h"

#include <cstring>

#include "gangway/mesh/geometry.h"

namespace gangway::equivalence {
namespace {

// Calls fn(offset in the shard, offset in the whole array or -1) for every element of a shard.
template <typename Fn>
void ForEachElement(const Shape& whole, const Shape& shard, const std::vector<ShardDim>& place, Fn fn) {
  const int64_t rank = shard.rank();
  DimVector index(rank, 0);
  const int64_t count = shard.ElementCount();
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    bool inside = true;
    for (int64_t d = 0; d < rank; ++d) {
      inside &= index[d] < place[d].valid;
      offset = offset * whole.dim(d) + place[d].offset + index[d];
    }
    fn(i, inside ? offset : -1);
    for (int64_t d = rank; d-- > 0;) {
      if (++index[d] < shard.dim(d)) break;
      index[d] = 0;
    }
  }
}

}  // namespace

Literal ShardLiteral(const Literal& whole, const Sharding& sharding, int64_t position, double poison) {
  const Shape shape = ShardShape(WithoutLayout(whole.shape()), sharding);
  Literal shard = SplatLiteral(shape, poison);
  const int width = ByteWidth(shape.dtype());
  ForEachElement(whole.shape(), shape, ShardOf(whole.shape(), sharding, position), [&](int64_t i, int64_t from) {
    if (from >= 0) std::memcpy(shard.data() + i * width, whole.data() + from * width, width);
  });
  return shard;
}

std::vector<Literal> ShardAll(const Literal& whole, const Sharding& sharding, int64_t devices, double poison) {
  std::vector<Literal> shards;
  for (int64_t device = 0; device < devices; ++device) {
    const int64_t position = sharding.mesh->PositionOf(device);
    Literal shard = ShardLiteral(whole, sharding, position, poison);
    const int64_t rank_of = CoordinateOf(*sharding.mesh, position, sharding.unreduced);
    const int64_t parts = ProductOf(sharding.unreduced);
    if (parts > 1) {
      // value = (value + 1 + ... + (parts-1)) - 1 - ... - (parts-1)
      const DType dtype = shard.shape().dtype();
      const int width = ByteWidth(dtype);
      for (int64_t i = 0; i < shard.shape().ElementCount(); ++i) {
        char* element = shard.data() + i * width;
        const double value = ElementAsDouble(dtype, element);
        StoreDouble(dtype,
                    rank_of == 0 ? value + static_cast<double>(parts * (parts - 1) / 2) : -static_cast<double>(rank_of),
                    element);
      }
    }
    shards.push_back(std::move(shard));
  }
  return shards;
}

Literal Assemble(const std::vector<Literal>& shards, const Shape& whole, const Sharding& sharding, bool* agree) {
  Literal result(WithoutLayout(whole));
  std::vector<bool> seen(static_cast<size_t>(whole.ElementCount()), false);
  *agree = true;
  AxisList used = sharding.DimAxes();
  used.insert(used.end(), sharding.unreduced.begin(), sharding.unreduced.end());
  const AxisList copies = UnusedAxes(*sharding.mesh, used);
  const int width = ByteWidth(whole.dtype());
  for (size_t device = 0; device < shards.size(); ++device) {
    const int64_t position = sharding.mesh->PositionOf(static_cast<int64_t>(device));
    // Partial results are repeated along the axes left over; one copy is added up.
    if (!sharding.unreduced.empty() && CoordinateOf(*sharding.mesh, position, copies) != 0) continue;
    ForEachElement(whole, shards[device].shape(), ShardOf(whole, sharding, position), [&](int64_t i, int64_t to) {
      if (to < 0) return;
      const char* element = shards[device].data() + i * width;
      char* target = result.data() + to * width;
      if (!sharding.unreduced.empty()) {
        StoreDouble(whole.dtype(), ElementAsDouble(whole.dtype(), target) + ElementAsDouble(whole.dtype(), element),
                    target);
      } else if (!seen[to]) {
        std::memcpy(target, element, width);
      } else {
        *agree &= std::memcmp(target, element, width) == 0;
      }
      seen[to] = true;
    });
  }
  return result;
}

Literal Counting(const Shape& shape) {
  Literal literal(shape);
  const int width = ByteWidth(shape.dtype());
  for (int64_t i = 0; i < shape.ElementCount(); ++i) {
    StoreDouble(shape.dtype(), static_cast<double>(i % 97 + 1), literal.data() + i * width);
  }
  return literal;
}

}  // namespace gangway::equivalence
