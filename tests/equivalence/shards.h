// Whole arrays and their shards as values: what the tests feed to the devices and read back from them.
#pragma once

#include <cstdint>
#include <vector>

#include "gangway/mesh/sharding.h"
#include "gangway/tensor/literal.h"

namespace gangway::equivalence {

// The shard of the device at a mesh position, padding filled with `poison` (a value that must never show up in a
// result).
Literal ShardLiteral(const Literal& whole, const Sharding& sharding, int64_t position, double poison);

// One shard per device (by device number, not position); partial results are made for unreduced axes: the first device
// along them holds the value, the others hold the reduction's identity plus shares that cancel.
std::vector<Literal> ShardAll(const Literal& whole, const Sharding& sharding, int64_t devices, double poison);

// Puts the valid parts together again; partial results are added up. Every copy must agree with the others bit for bit
// unless `sharding` has partial sums; `agree` says so.
Literal Assemble(const std::vector<Literal>& shards, const Shape& whole, const Sharding& sharding, bool* agree);

// A literal with distinct small values: integers are exact in every type of 8 bits and more.
Literal Counting(const Shape& shape);

}  // namespace gangway::equivalence
