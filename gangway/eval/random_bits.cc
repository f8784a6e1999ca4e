#include "gangway/eval/random_bits.h"

#include <bit>

#include "gangway/eval/strided.h"

namespace gangway::eval {
namespace {

std::array<uint32_t, 2> Halves(uint64_t word) {
  return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)};
}

uint64_t Joined(uint32_t low, uint32_t high) { return low | (static_cast<uint64_t>(high) << 32); }

std::array<uint64_t, 2> Advanced(std::array<uint64_t, 2> counter, uint64_t by) {
  uint64_t low = counter[0] + by;
  return {low, counter[1] + (low < counter[0] ? 1 : 0)};
}

// The dimension whose halves hold the two words: the first even one, else the largest.
int64_t SplitDimension(const DimVector& dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] % 2 == 0) return static_cast<int64_t>(i);
  }
  size_t largest = 0;
  for (size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] > dims[largest]) largest = i;
  }
  return static_cast<int64_t>(largest);
}

RandomBits ThreeFry64(uint64_t key, uint64_t counter, int64_t count) {
  RandomBits result;
  for (int64_t i = 0; i < count; ++i) {
    std::array<uint32_t, 2> words = ThreeFry2x32(Halves(counter + i), Halves(key));
    result.bits.push_back(Joined(words[0], words[1]));
  }
  result.counter = {counter + static_cast<uint64_t>(count)};
  return result;
}

}  // namespace

std::array<uint32_t, 2> ThreeFry2x32(std::array<uint32_t, 2> counter, std::array<uint32_t, 2> key) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
  uint32_t x0 = counter[0] + keys[0], x1 = counter[1] + keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kRotations[group % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, rotation) ^ x0;
    }
    x0 += keys[(group + 1) % 3];
    x1 += keys[(group + 2) % 3] + group + 1;
  }
  return {x0, x1};
}

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> x, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * x[0], b = uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return x;
}

RandomBits ThreeFryBits(uint64_t key, uint64_t counter, const DimVector& dims, int width) {
  if (width == 64) return ThreeFry64(key, counter, CountOf(dims));
  int64_t split = dims.empty() ? -1 : SplitDimension(dims);
  // Counters run over the array with the split dimension halved.
  DimVector half = dims;
  if (split >= 0) half[split] = (half[split] + 1) / 2;
  DimVector strides = Strides(half);
  RandomBits result;
  result.counter = {counter + static_cast<uint64_t>(CountOf(half))};
  DimVector index(dims.size(), 0);
  int64_t count = CountOf(dims);
  for (int64_t i = 0; i < count; ++i, Next(dims, &index)) {
    DimVector at = index;
    // Element 2j holds the first word and 2j + 1 the second.
    int word = 0;
    if (split >= 0) {
      word = static_cast<int>(index[split] % 2);
      at[split] = index[split] / 2;
    }
    uint64_t position = static_cast<uint64_t>(Offset(at, strides));
    uint32_t drawn = ThreeFry2x32(Halves(counter + position), Halves(key))[word];
    result.bits.push_back(width == 32 ? drawn : drawn & ((1u << width) - 1));
  }
  return result;
}

RandomBits PhiloxBits(uint64_t key, std::array<uint64_t, 2> counter, int64_t count, int width) {
  int64_t per_block = width == 64 ? 2 : 4;
  int64_t blocks = (count + per_block - 1) / per_block;
  RandomBits result;
  for (int64_t i = 0; i < blocks; ++i) {
    std::array<uint64_t, 2> at = Advanced(counter, static_cast<uint64_t>(i));
    std::array<uint32_t, 2> low = Halves(at[0]), high = Halves(at[1]);
    std::array<uint32_t, 4> words = Philox4x32({low[0], low[1], high[0], high[1]}, Halves(key));
    for (int64_t k = 0; k < per_block && static_cast<int64_t>(result.bits.size()) < count; ++k) {
      uint64_t word = width == 64 ? Joined(words[2 * k], words[2 * k + 1]) : words[k];
      result.bits.push_back(width >= 32 ? word : word & ((uint64_t{1} << width) - 1));
    }
  }
  std::array<uint64_t, 2> next = Advanced(counter, static_cast<uint64_t>(blocks));
  result.counter = {next[0], next[1]};
  return result;
}

}  // namespace gangway::eval
