#include "gangway/worker/shard_memory.h"

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::worker {
namespace {

constexpr size_t kLarge = size_t{64} << 20;

TEST(ShardMemory, LargeMemoryComesBack) {
  void* first = nullptr;
  {
    auto bytes = NewShardBytes(kLarge - 5);
    ASSERT_TRUE(bytes.ok());
    first = bytes->get();
    std::memset(first, 1, kLarge - 5);
  }
  auto again = NewShardBytes(kLarge - 7);  // as many pages
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->get(), first);
  auto other = NewShardBytes(kLarge);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->get(), first);
  InlineExecutor helper;
  PrepareShardBytes(*other, kLarge, helper);
  std::memset(other->get(), 2, kLarge);
  std::memset(again->get(), 3, kLarge - 7);
  EXPECT_EQ(static_cast<char*>(other->get())[kLarge - 1], 2);
}

// Bytes of this process that the system may take: what is kept, when it was written before.
size_t LazilyFreed() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    size_t kilobytes = 0;
    if (word == "LazyFree:" && rollup >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

TEST(ShardMemory, KeepsNoMoreThanItSaysForTheSystemToTake) {
  std::vector<ShardBytes> held;
  for (size_t bytes = 0; bytes < kMostKept + 3 * kLarge; bytes += kLarge) {
    held.push_back(*NewShardBytes(kLarge));
    std::memset(held.back().get(), 1, kLarge);
  }
  held.clear();
  EXPECT_LE(LazilyFreed(), kMostKept);
  EXPECT_GT(LazilyFreed(), kMostKept / 2);
}

TEST(ShardMemory, NoMemoryIsAnError) {
  EXPECT_EQ(NewShardBytes(SIZE_MAX / 4).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(NewShardBytes(SIZE_MAX).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ShardMemory, EmptyShardsHaveAPlace) { EXPECT_NE(NewShardBytes(0)->get(), nullptr); }

}  // namespace
}  // namespace gangway::worker
