#include "gangway/ifrt_proxy/host_buffers.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::ifrt_proxy {
namespace {

SharedBytes Bytes(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

TEST(HostBuffersTest, TakeRemovesAndPeekKeeps) {
  HostBuffers buffers(100);
  ASSERT_TRUE(buffers.Store(1, Bytes("abc")).ok());
  EXPECT_EQ(**buffers.Peek(1), "abc");
  EXPECT_EQ(**buffers.Take(1), "abc");
  EXPECT_EQ(buffers.Take(1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(buffers.Peek(1).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(HostBuffersTest, CapacityIsGivenBackWhenTaken) {
  HostBuffers buffers(4);
  ASSERT_TRUE(buffers.Store(1, Bytes("abc")).ok());
  EXPECT_EQ(buffers.Store(2, Bytes("de")).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(buffers.Store(1, Bytes("")).code(), absl::StatusCode::kAlreadyExists);
  buffers.Delete(1);
  EXPECT_TRUE(buffers.Store(2, Bytes("de")).ok());
}

TEST(HostBuffersTest, WhatArrivesTakesRoomToo) {
  HostBuffers buffers(10);
  {
    HostBuffers::Arrival first(buffers), second(buffers);
    EXPECT_TRUE(first.Add(6).ok());
    EXPECT_TRUE(absl::IsResourceExhausted(second.Add(5)));
    EXPECT_TRUE(second.Add(4).ok());
    EXPECT_TRUE(absl::IsResourceExhausted(buffers.Store(1, std::make_shared<const std::string>("a"))));
    first.Drop();
    EXPECT_TRUE(buffers.Store(1, std::make_shared<const std::string>("abcdef")).ok());
  }
  HostBuffers::Arrival last(buffers);
  EXPECT_TRUE(last.Add(4).ok());
  buffers.Close();
  EXPECT_TRUE(absl::IsCancelled(last.Add(1)));
}

TEST(HostBuffersTest, ArrivalAndCloseWakeWhoeverWaits) {
  HostBuffers buffers(100);
  int woken = 0;
  buffers.WhenStored(1, [&] { ++woken; });
  EXPECT_EQ(woken, 0);
  ASSERT_TRUE(buffers.Store(1, Bytes("")).ok());
  EXPECT_EQ(woken, 1);
  buffers.WhenStored(1, [&] { ++woken; });
  EXPECT_EQ(woken, 2);
  buffers.WhenStored(2, [&] { ++woken; });
  buffers.Close();
  EXPECT_EQ(woken, 3);
  EXPECT_EQ(buffers.Store(3, Bytes("x")).code(), absl::StatusCode::kCancelled);
}

TEST(HostBuffersTest, EveryoneWhoWaitsForAHandleHears) {
  HostBuffers buffers(100);
  int woken = 0;
  buffers.WhenStored(1, [&] { ++woken; });
  buffers.WhenStored(1, [&] { ++woken; });
  ASSERT_TRUE(buffers.Store(1, Bytes("")).ok());
  EXPECT_EQ(woken, 2);
}

TEST(HostBuffersTest, WaitsEndByDeadlineUnlessPromised) {
  HostBuffers buffers(100);
  ASSERT_TRUE(buffers.Promise(1));
  EXPECT_FALSE(buffers.Promise(1)) << "twice";
  const absl::Time now = absl::UnixEpoch();
  std::vector<std::string> heard;
  buffers.WhenStored(
      1, [&] { heard.push_back("promised"); }, now);
  buffers.WhenStored(
      2, [&] { heard.push_back("late"); }, now);
  buffers.WhenStored(
      2, [&] { heard.push_back("has time"); }, now + absl::Seconds(1));
  buffers.Expire(now);
  EXPECT_THAT(heard, testing::ElementsAre("late"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(buffers.Peek(2).status()));
  ASSERT_TRUE(buffers.Store(2, Bytes("")).ok());
  EXPECT_THAT(heard, testing::ElementsAre("late", "has time"));
  buffers.Close();
  EXPECT_THAT(heard, testing::ElementsAre("late", "has time", "promised"));
  EXPECT_TRUE(absl::IsCancelled(buffers.Peek(1).status()));
}

TEST(HostBuffersTest, OnlySoMuchIsPromised) {
  HostBuffers buffers(100);
  uint64_t handle = 0;
  while (handle < 1000 && buffers.Promise(handle)) ++handle;
  EXPECT_LT(handle, 100u);
  ASSERT_TRUE(buffers.Store(0, Bytes("")).ok());
  EXPECT_TRUE(buffers.Promise(1000)) << "one has been kept";
}

TEST(HostBuffersTest, OnlySoManyAreKept) {
  HostBuffers buffers(100);
  const SharedBytes nothing = Bytes("");
  absl::Status refused;
  uint64_t handle = 0;
  for (; refused.ok() && handle < (1 << 21); ++handle) refused = buffers.Store(handle, nothing);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  buffers.StoreError(handle + 1, absl::DataLossError("an error takes a place too"));
  EXPECT_FALSE(buffers.Contains(handle + 1));
  buffers.Delete(7);
  EXPECT_TRUE(buffers.Store(handle, nothing).ok());
}

TEST(HostBuffersTest, SessionsOfATenantCountTogether) {
  auto account = std::make_shared<controller::ByteAccount>("tenant red", "max_host_bytes", 10);
  HostBuffers first(100);
  {
    HostBuffers second(100);
    ASSERT_TRUE(first.Store(1, Bytes("abcdef")).ok()) << "before it is known whose it is";
    first.CountIn(account);
    second.CountIn(account);
    EXPECT_THAT(second.Store(1, Bytes("abcdef")).message(), testing::HasSubstr("host buffer 1: tenant red: 6 B more"));
    HostBuffers::Arrival arrival(second);
    EXPECT_FALSE(arrival.Add(5).ok());
    EXPECT_TRUE(arrival.Add(4).ok());
    first.Delete(1);
    EXPECT_TRUE(second.Store(1, Bytes("abcdef")).ok());
    EXPECT_EQ(account->bytes(), 10);
  }
  EXPECT_EQ(account->bytes(), 0) << "what a session held goes with it";
  ASSERT_TRUE(first.Store(2, Bytes("abc")).ok());
  first.Close();
  EXPECT_EQ(account->bytes(), 0);
}

TEST(HostBuffersTest, WhatLeavesTakesRoomUntilItHasLeft) {
  HostBuffers buffers(4);
  {
    HostBuffers::Leaving first(buffers), second(buffers);
    EXPECT_TRUE(first.Add(3).ok());
    EXPECT_TRUE(absl::IsResourceExhausted(second.Add(2)));
    EXPECT_TRUE(buffers.Store(1, Bytes("abcd")).ok()) << "beside what is kept";
  }
  EXPECT_TRUE(HostBuffers::Leaving(buffers).Add(4).ok());
}

TEST(HostBuffersTest, OnlySoManyLookupsWait) {
  HostBuffers buffers(4);
  std::vector<std::unique_ptr<HostBuffers::Leaving>> lookups;
  absl::Status refused;
  while (refused.ok() && lookups.size() < (1 << 20)) {
    refused = lookups.emplace_back(std::make_unique<HostBuffers::Leaving>(buffers))->Begin();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  lookups.erase(lookups.begin());
  EXPECT_TRUE(HostBuffers::Leaving(buffers).Begin().ok());
}

TEST(HostBuffersTest, AnErrorTakesTheBuffersPlace) {
  HostBuffers buffers(100);
  buffers.StoreError(1, absl::DataLossError("3 of 4 bytes arrived"));
  EXPECT_EQ(buffers.Take(1).status().message(), "3 of 4 bytes arrived");
}

}  // namespace
}  // namespace gangway::ifrt_proxy
