#include "gangway/worker/shard_memory.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::worker {
namespace {

constexpr size_t kLarge = size_t{64} << 20;

TEST(ShardMemory, PagesMadeAheadAreThere) {
  auto bytes = NewShardBytes(kLarge - 5);
  ASSERT_TRUE(bytes.ok());
  InlineExecutor helper;
  PrepareShardBytes(*bytes, kLarge - 5, helper);
  auto* memory = static_cast<char*>(bytes->get());
  std::memset(memory, 2, kLarge - 5);
  EXPECT_EQ(memory[kLarge - 6], 2);
}

TEST(ShardMemory, PagesNobodyWantsAreNotMade) {
  SimExecutor helper(1);
  {
    auto bytes = NewShardBytes(kLarge);
    ASSERT_TRUE(bytes.ok());
    PrepareShardBytes(*bytes, kLarge, helper);
  }
  EXPECT_EQ(helper.RunUntilIdle(), 1);
}

TEST(ShardMemory, NoMemoryIsAnError) {
  EXPECT_EQ(NewShardBytes(SIZE_MAX / 4).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(NewShardBytes(SIZE_MAX).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ShardMemory, EmptyShardsHaveAPlace) { EXPECT_NE(NewShardBytes(0)->get(), nullptr); }

}  // namespace
}  // namespace gangway::worker
