#include "gangway/ifrt_proxy/host_buffers.h"

#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace gangway::ifrt_proxy {
namespace {

SharedBytes Bytes(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

TEST(HostBuffersTest, TakeRemovesAndAwaitKeeps) {
  HostBuffers buffers(100);
  ASSERT_TRUE(buffers.Store(1, Bytes("abc")).ok());
  EXPECT_EQ(**buffers.Await(1, absl::Now()), "abc");
  EXPECT_EQ(**buffers.Take(1), "abc");
  EXPECT_EQ(buffers.Take(1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(buffers.Await(1, absl::Now()).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(HostBuffersTest, CapacityIsGivenBackWhenTaken) {
  HostBuffers buffers(4);
  ASSERT_TRUE(buffers.Store(1, Bytes("abc")).ok());
  EXPECT_EQ(buffers.Store(2, Bytes("de")).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(buffers.Store(1, Bytes("")).code(), absl::StatusCode::kAlreadyExists);
  buffers.Delete(1);
  EXPECT_TRUE(buffers.Store(2, Bytes("de")).ok());
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

TEST(HostBuffersTest, WhatIsPromisedIsWaitedFor) {
  HostBuffers buffers(100);
  ASSERT_TRUE(buffers.Promise(1));
  EXPECT_FALSE(buffers.Promise(1)) << "twice";
  std::thread reader([&] { EXPECT_EQ(**buffers.Await(1, absl::InfinitePast()), "abc"); });
  ASSERT_TRUE(buffers.Store(1, Bytes("abc")).ok());
  reader.join();
  ASSERT_TRUE(buffers.Promise(2));
  std::thread other([&] { EXPECT_TRUE(absl::IsCancelled(buffers.Await(2, absl::InfinitePast()).status())); });
  buffers.Close();
  other.join();
}

TEST(HostBuffersTest, OnlySoMuchIsPromised) {
  HostBuffers buffers(100);
  uint64_t handle = 0;
  while (handle < 1000 && buffers.Promise(handle)) ++handle;
  EXPECT_LT(handle, 100u);
  ASSERT_TRUE(buffers.Store(0, Bytes("")).ok());
  EXPECT_TRUE(buffers.Promise(1000)) << "one has been kept";
}

TEST(HostBuffersTest, AnErrorTakesTheBuffersPlace) {
  HostBuffers buffers(100);
  buffers.StoreError(1, absl::DataLossError("3 of 4 bytes arrived"));
  EXPECT_EQ(buffers.Take(1).status().message(), "3 of 4 bytes arrived");
}

}  // namespace
}  // namespace gangway::ifrt_proxy
