#include "gangway/store/store.h"

#include "gangway/base/sim_timeline.h"
#include "gangway/device/modelled/modelled_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::store {
namespace {

class StoreTest : public testing::Test {
 protected:
  device::BufferRef Buffer(int device, int elements) {
    std::string bytes(elements * 4, 'x');
    device::HostArray array;
    array.type = {DType::kS32, {elements}};
    array.data = bytes.data();
    return *client_->FromHost(*client_->devices()[device], array);
  }
  SimTimeline timeline_{0};
  std::unique_ptr<device::Client> client_ = device::MakeModelledClient(timeline_, {.devices = 2});
  Store store_{2};
};

TEST_F(StoreTest, CountsEachBufferOnce) {
  ASSERT_TRUE(store_.Create(BufferId(1)).ok());
  ASSERT_TRUE(store_.Create(BufferId(2)).ok());
  auto buffer = Buffer(0, 10);
  ASSERT_TRUE(store_.Put(BufferId(1), 0, Shard(buffer)).ok());
  ASSERT_TRUE(store_.Put(BufferId(2), 0, Shard(buffer)).ok());
  ASSERT_TRUE(store_.Put(BufferId(2), 1, Shard(Buffer(1, 5))).ok());
  EXPECT_EQ(store_.bytes(), 60);
  EXPECT_THAT(store_.device_bytes(), testing::ElementsAre(40, 20));
  store_.Free(BufferId(1));
  EXPECT_EQ(store_.bytes(), 60);
  EXPECT_EQ(store_.Find(BufferId(1)), nullptr);
  store_.Free(BufferId(2));
  EXPECT_EQ(store_.bytes(), 0);
  EXPECT_EQ(store_.buffers(), 0);
  store_.Free(BufferId(2));
}

TEST_F(StoreTest, WhoWaitsHearsOnceItIsThere) {
  ASSERT_TRUE(store_.Create(BufferId(1)).ok());
  ASSERT_TRUE(store_.Put(BufferId(1), 1, Shard::Pending()).ok());
  Shard taken = (*store_.Find(BufferId(1)))[1];
  EXPECT_TRUE(taken.pending());
  EXPECT_FALSE((*store_.Find(BufferId(1)))[0].exists());
  int heard = 0;
  taken.OnSettled([&] { ++heard; });
  // Freed while somebody waits: it still arrives there.
  store_.Free(BufferId(1));
  EXPECT_EQ(store_.Find(BufferId(1)), nullptr);
  EXPECT_EQ(store_.buffers(), 1);
  auto buffer = Buffer(1, 1);
  ASSERT_TRUE(store_.Put(BufferId(1), 1, Shard(buffer)).ok());
  EXPECT_EQ(heard, 1);
  EXPECT_EQ(*taken.Value(), buffer);
  EXPECT_EQ(store_.buffers(), 0);
  EXPECT_EQ(store_.bytes(), 0);
}

TEST_F(StoreTest, PoisonReachesAllShards) {
  ASSERT_TRUE(store_.Create(BufferId(1)).ok());
  ASSERT_TRUE(store_.Put(BufferId(1), 0, Shard(Buffer(0, 4))).ok());
  ASSERT_TRUE(store_.Put(BufferId(1), 1, Shard::Pending()).ok());
  Shard waiting = (*store_.Find(BufferId(1)))[1];
  ASSERT_TRUE(store_.Poison(BufferId(1), absl::InternalError("boom")).ok());
  EXPECT_EQ(waiting.Value().status().message(), "boom");
  EXPECT_EQ((*store_.Find(BufferId(1)))[0].Value().status().message(), "boom");
  EXPECT_EQ(store_.bytes(), 0);
}

TEST_F(StoreTest, MistakesAreErrors) {
  ASSERT_TRUE(store_.Create(BufferId(1)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store_.Create(BufferId(1)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_.Put(BufferId(1), 2, Shard(Buffer(0, 1)))));
  EXPECT_TRUE(absl::IsNotFound(store_.Put(BufferId(2), 0, Shard(Buffer(0, 1)))));
  ASSERT_TRUE(store_.Put(BufferId(1), 0, Shard(Buffer(0, 1))).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store_.Put(BufferId(1), 0, Shard(Buffer(0, 1)))));
}

}  // namespace
}  // namespace gangway::store
