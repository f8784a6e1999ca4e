#include "gangway/worker/digest.h"

#include <cstdint>
#include <cstring>

#include "gangway/base/mix.h"
#include "gangway/tensor/float_format.h"

namespace gangway::worker {
namespace {

// Four lanes, so that one word need not wait for the word before.
uint64_t HashOf(absl::string_view bytes) {
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + sizeof(lanes) <= bytes.size(); at += sizeof(lanes)) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + at, sizeof(words));
    for (int i = 0; i < 4; ++i) lanes[i] = Mix(lanes[i], words[i]);
  }
  uint64_t hash = bytes.size();
  for (uint64_t lane : lanes) hash = Mix(hash, lane);
  for (; at < bytes.size(); ++at) hash = Mix(hash, static_cast<unsigned char>(bytes[at]));
  return hash;
}

// IEEE formats: without the sign, whatever lies above infinity.
template <typename Word>
bool HasNan(absl::string_view bytes, Word infinity) {
  constexpr Word kMagnitude = static_cast<Word>(~Word{0}) >> 1;
  bool found = false;
  for (size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    found |= (word & kMagnitude) > infinity;
  }
  return found;
}

bool HasNan(absl::string_view bytes, DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kC128:
      return HasNan<uint64_t>(bytes, 0x7FF0000000000000);
    case DType::kF32:
    case DType::kC64:
      return HasNan<uint32_t>(bytes, 0x7F800000);
    case DType::kF16:
    case DType::kBF16:
      return HasNan<uint16_t>(bytes, static_cast<uint16_t>(FormatOf(dtype).infinity()));
    default:
      return false;  // of the formats of 8 bits and fewer most have no NaN, or none that is no overflow
  }
}

}  // namespace

net::Digest DigestOf(absl::string_view bytes, DType dtype) { return {HashOf(bytes), HasNan(bytes, dtype)}; }

}  // namespace gangway::worker
