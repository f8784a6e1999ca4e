// The step of our content hashes. Not for hash tables (absl::Hash), nor against anybody who means harm.
#pragma once

#include <cstdint>

namespace gangway {

// The hash of what `hash` is the hash of, followed by `word`. The same in every process.
inline uint64_t Mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15;
  return hash ^ hash >> 32;
}

}  // namespace gangway
