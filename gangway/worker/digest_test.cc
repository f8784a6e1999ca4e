#include "gangway/worker/digest.h"

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace gangway::worker {
namespace {

template <typename T>
net::Digest Of(const std::vector<T>& values, DType dtype) {
  return DigestOf({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)}, dtype);
}

TEST(DigestTest, EveryByteCounts) {
  for (size_t size : {1, 7, 8, 31, 32, 33, 100}) {
    std::set<uint64_t> hashes;
    std::string bytes(size, '\0');
    hashes.insert(DigestOf(bytes, DType::kU8).hash);
    for (size_t i = 0; i < size; ++i) {
      bytes[i] = 1;
      hashes.insert(DigestOf(bytes, DType::kU8).hash);
      bytes[i] = 0;
    }
    EXPECT_EQ(hashes.size(), size + 1);
  }
  EXPECT_NE(DigestOf(std::string(3, '\0'), DType::kU8).hash, DigestOf(std::string(4, '\0'), DType::kU8).hash);
}

TEST(DigestTest, NansOfEveryWidth) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(Of<float>({1, -infinity, infinity, 0}, DType::kF32).has_nan);
  EXPECT_TRUE(Of<float>({1, 2, 3, -nan}, DType::kF32).has_nan);
  EXPECT_TRUE(Of<float>({1, nan}, DType::kC64).has_nan);
  EXPECT_FALSE(Of<double>({-infinity}, DType::kF64).has_nan);
  EXPECT_TRUE(Of<double>({0, nan}, DType::kF64).has_nan);
  EXPECT_FALSE(Of<uint16_t>({0x7F80, 0xFF80}, DType::kBF16).has_nan);
  EXPECT_TRUE(Of<uint16_t>({0xFF81}, DType::kBF16).has_nan);
  EXPECT_FALSE(Of<uint16_t>({0x7C00, 0xFC00}, DType::kF16).has_nan);
  EXPECT_TRUE(Of<uint16_t>({0x7C01}, DType::kF16).has_nan);
  EXPECT_FALSE(Of<uint32_t>({0x7FC00000}, DType::kU32).has_nan);  // a number
}

}  // namespace
}  // namespace gangway::worker
