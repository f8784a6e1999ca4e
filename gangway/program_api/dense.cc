#include "gangway/program_api/dense.h"

#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "gangway/mesh/geometry.h"

namespace gangway::program_api {
namespace {

int64_t ElementCount(const DimVector& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

// Calls row(offset in the whole, offset in the shard, elements) for each run of elements that lie together in both.
template <typename Row>
void ForEachRow(const DimVector& dims, const std::vector<ShardDim>& shard, Row row) {
  const size_t rank = dims.size();
  for (const ShardDim& dim : shard) {
    if (dim.valid == 0) return;
  }
  if (rank == 0) return row(0, 0, 1);
  std::vector<int64_t> index(rank, 0);
  while (true) {
    int64_t whole = 0, part = 0;
    for (size_t d = 0; d < rank; ++d) {
      whole = whole * dims[d] + shard[d].offset + index[d];
      part = part * shard[d].extent + index[d];
    }
    row(whole, part, shard[rank - 1].valid);
    size_t d = rank - 1;
    while (d > 0 && ++index[d - 1] == shard[d - 1].valid) index[--d] = 0;
    if (d == 0) return;
  }
}

std::vector<int64_t> OffsetsOf(const std::vector<ShardDim>& shard) {
  std::vector<int64_t> offsets;
  for (const ShardDim& dim : shard) offsets.push_back(dim.offset);
  return offsets;
}

}  // namespace

absl::StatusOr<std::vector<controller::HostShard>> ShardsOf(const Shape& shape, const Sharding& sharding,
                                                            SharedBytes value) {
  const int64_t width = ByteWidth(shape.dtype());
  const int64_t bytes = ElementCount(shape.dims()) * width;
  if (static_cast<int64_t>(value->size()) != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value of ", value->size(), " bytes for ", shape.ToString(), ", which takes ", bytes));
  }
  std::vector<controller::HostShard> shards;
  std::map<std::vector<int64_t>, size_t> by_offset;
  const int64_t devices = sharding.mesh->size();
  for (int64_t device = 0; device < devices; ++device) {
    const std::vector<ShardDim> part = ShardOfDevice(shape, sharding, device);
    auto [at, is_new] = by_offset.try_emplace(OffsetsOf(part), shards.size());
    if (!is_new) {
      shards[at->second].devices.push_back(static_cast<int>(device));
      continue;
    }
    int64_t count = 1;
    for (const ShardDim& dim : part) count *= dim.extent;
    SharedBytes own = value;
    if (count * width != bytes || !IsEven(shape, sharding)) {
      auto cut = std::make_shared<std::string>(count * width, '\0');
      ForEachRow(shape.dims(), part, [&](int64_t from, int64_t to, int64_t elements) {
        std::memcpy(cut->data() + to * width, value->data() + from * width, elements * width);
      });
      own = std::move(cut);
    }
    shards.push_back({std::move(own), {static_cast<int>(device)}});
  }
  return shards;
}

std::vector<int> PositionsToFetch(const controller::ArraySpec& spec) {
  if (!spec.sharding.has_value()) return {0};
  const Shape shape(spec.dtype, spec.dims);
  std::map<std::vector<int64_t>, int> first;
  std::vector<int> positions;
  for (int position = 0; position < static_cast<int>(spec.devices.size()); ++position) {
    const auto part = ShardOfDevice(shape, *spec.sharding, position);
    if (first.try_emplace(OffsetsOf(part), position).second) positions.push_back(position);
  }
  return positions;
}

void PlaceShard(const controller::ArraySpec& spec, int position, const std::string& shard, std::string* value) {
  if (!spec.sharding.has_value()) {
    *value = shard;
    return;
  }
  const int64_t width = ByteWidth(spec.dtype);
  ForEachRow(spec.dims, ShardOfDevice(Shape(spec.dtype, spec.dims), *spec.sharding, position),
             [&](int64_t to, int64_t from, int64_t elements) {
               std::memcpy(value->data() + to * width, shard.data() + from * width, elements * width);
             });
}

}  // namespace gangway::program_api
