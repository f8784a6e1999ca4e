// The counter-based generators behind rng-bit-generator. Internal to eval.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gangway/tensor/shape.h"

namespace gangway::eval {

// Threefry-2x32, 20 rounds, and Philox-4x32, 10 rounds (Salmon et al., SC 2011).
std::array<uint32_t, 2> ThreeFry2x32(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key);
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

struct RandomBits {
  std::vector<uint64_t> bits;     // one word of the low `width` bits per element
  std::vector<uint64_t> counter;  // after drawing: one word (threefry) or two (philox, low first)
};

// As XLA lays the generators' words out over an array: threefry fills the two halves of an even dimension (or the
// largest) with its two words, philox its four words one after the other.
RandomBits ThreeFryBits(uint64_t key, uint64_t counter, const DimVector& dims, int width);
RandomBits PhiloxBits(uint64_t key, std::array<uint64_t, 2> counter, int64_t count, int width);

}  // namespace gangway::eval
