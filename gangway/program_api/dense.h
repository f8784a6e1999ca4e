// A whole value in host memory and its shards: dense, row-major, an element a byte at least.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/controller/controller.h"

namespace gangway::program_api {

using SharedBytes = std::shared_ptr<const std::string>;

// The shards of `value`, each once, for the devices of an array of that shape and sharding. Padding is zero.
// INVALID_ARGUMENT when the value has another size.
absl::StatusOr<std::vector<controller::HostShard>> ShardsOf(const Shape& shape, const Sharding& sharding,
                                                            SharedBytes value);

// The positions whose shards make up the whole value, each part once.
std::vector<int> PositionsToFetch(const controller::ArraySpec& spec);
// Puts the shard at a position of `spec` into its place in `value`, which has the size of the whole.
void PlaceShard(const controller::ArraySpec& spec, int position, const std::string& shard, std::string* value);

}  // namespace gangway::program_api
