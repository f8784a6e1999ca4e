// What every channel must do. A backend's test includes this and instantiates ChannelCts with its harness.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gangway/net/channel.h"
#include "gangway/net/cts/samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::net {

class ChannelHarness {
 public:
  virtual ~ChannelHarness() = default;
  virtual std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> Connect() = 0;
  // Lets the network work until the condition holds; false when it never does.
  virtual bool RunUntil(const std::function<bool()>& condition) = 0;
};

using MakeChannelHarness = std::function<std::unique_ptr<ChannelHarness>()>;

// What one end received.
class Received {
 public:
  ChannelHandler handler() {
    return {[this](std::vector<Message> messages) {
              absl::MutexLock lock(&mutex_);
              ++deliveries_;
              for (Message& message : messages) messages_.push_back(std::move(message));
            },
            [this](const absl::Status& reason) {
              absl::MutexLock lock(&mutex_);
              reasons_.push_back(reason);
              messages_at_close_ = messages_.size();
            }};
  }
  size_t count() const {
    absl::MutexLock lock(&mutex_);
    return messages_.size();
  }
  std::vector<Message> messages() const {
    absl::MutexLock lock(&mutex_);
    return messages_;
  }
  // How often the handler was called with messages.
  int deliveries() const {
    absl::MutexLock lock(&mutex_);
    return deliveries_;
  }
  std::vector<absl::Status> reasons() const {
    absl::MutexLock lock(&mutex_);
    return reasons_;
  }
  size_t messages_at_close() const {
    absl::MutexLock lock(&mutex_);
    return messages_at_close_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<Message> messages_ ABSL_GUARDED_BY(mutex_);
  int deliveries_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<absl::Status> reasons_ ABSL_GUARDED_BY(mutex_);
  size_t messages_at_close_ ABSL_GUARDED_BY(mutex_) = 0;
};

class ChannelCts : public testing::TestWithParam<MakeChannelHarness> {
 protected:
  void SetUp() override {
    harness_ = GetParam()();
    std::tie(a_, b_) = harness_->Connect();
    ASSERT_NE(a_, nullptr);
    ASSERT_NE(b_, nullptr);
  }
  void TearDown() override {
    a_.reset();
    b_.reset();
  }
  bool Until(const std::function<bool()>& condition) { return harness_->RunUntil(condition); }

  Received at_a_, at_b_;  // outlive the channels
  std::unique_ptr<ChannelHarness> harness_;
  std::unique_ptr<Channel> a_, b_;
};

TEST_P(ChannelCts, EveryMessageArrivesWholeAndInOrder) {
  a_->Start(at_a_.handler());
  b_->Start(at_b_.handler());
  const std::vector<Message> samples = SampleMessages();
  for (const Message& message : samples) {
    ASSERT_TRUE(a_->Send(message).ok());
    ASSERT_TRUE(b_->Send(message).ok());
  }
  ASSERT_TRUE(Until([&] { return at_a_.count() == samples.size() && at_b_.count() == samples.size(); }));
  EXPECT_TRUE(at_a_.messages() == samples);
  EXPECT_TRUE(at_b_.messages() == samples);
}

TEST_P(ChannelCts, ManySmallMessages) {
  a_->Start(at_a_.handler());
  b_->Start(at_b_.handler());
  constexpr int kCount = 2000;
  for (int i = 0; i < kCount; ++i) {
    Message message = FetchShard{RequestId(i), BufferId(i), i};
    ASSERT_TRUE((i % 3 == 0 ? a_->SendLater(message) : a_->Send(message)).ok());
  }
  a_->Flush();
  ASSERT_TRUE(Until([&] { return at_b_.count() == kCount; }));
  const auto messages = at_b_.messages();
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(std::get<FetchShard>(messages[i]).device, i);
}

TEST_P(ChannelCts, WhatMayWaitGoesWithTheNextFlush) {
  a_->Start(at_a_.handler());
  b_->Start(at_b_.handler());
  ASSERT_TRUE(a_->SendLater(Welcome{1, PeerId(0)}).ok());
  a_->Flush();
  ASSERT_TRUE(Until([&] { return at_b_.count() == 1; }));
}

TEST_P(ChannelCts, WhatWaitsLeavesTogether) {
  a_->Start(at_a_.handler());
  b_->Start(at_b_.handler());
  ASSERT_TRUE(a_->Send(Mark{RequestId(0)}).ok());
  ASSERT_TRUE(Until([&] { return at_b_.count() == 1; }));  // connected
  // A sender may learn late that what went before was written, and then takes along what waits by that time. Not
  // always.
  bool together = false;
  for (size_t round = 0; round < 20 && !together; ++round) {
    const auto before = at_b_.deliveries();
    for (int i = 1; i <= 100; ++i) ASSERT_TRUE(a_->SendLater(Mark{RequestId(i)}).ok());
    a_->Flush();
    ASSERT_TRUE(Until([&] { return at_b_.count() == 1 + 100 * (round + 1); }));
    EXPECT_LE(at_b_.deliveries(), before + 2);
    together = at_b_.deliveries() == before + 1;
  }
  EXPECT_TRUE(together);
}

TEST_P(ChannelCts, LargePayloads) {
  a_->Start(at_a_.handler());
  b_->Start(at_b_.handler());
  std::string text(11'000'001, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  Payload big(std::make_shared<const std::string>(std::move(text)));
  Payload small(std::make_shared<const std::string>("small"));
  const MakeBuffer make{
      BufferId(1), TaskId(1), DType::kU8, {{small, {5}, {0}}, {big, {11'000'001}, {0}}, {small, {5}, {1}}}};
  ASSERT_TRUE(a_->Send(Welcome{1, PeerId(0)}).ok());
  ASSERT_TRUE(a_->Send(make).ok());
  ASSERT_TRUE(a_->Send(Welcome{2, PeerId(0)}).ok());
  ASSERT_TRUE(b_->Send(Fetched{RequestId(1), absl::OkStatus(), big}).ok());
  ASSERT_TRUE(Until([&] { return at_b_.count() == 3 && at_a_.count() == 1; }));
  EXPECT_TRUE(at_b_.messages()[1] == Message(make));
  EXPECT_TRUE(std::get<Fetched>(at_a_.messages()[0]).bytes == big);
  EXPECT_TRUE(at_b_.messages()[2] == Message(Welcome{2, PeerId(0)}));
}

TEST_P(ChannelCts, WhatArrivesBeforeStartIsKept) {
  a_->Start(at_a_.handler());
  ASSERT_TRUE(a_->Send(Welcome{1, PeerId(0)}).ok());
  ASSERT_TRUE(a_->Send(Welcome{2, PeerId(0)}).ok());
  (void)Until([&] { return true; });
  b_->Start(at_b_.handler());
  ASSERT_TRUE(a_->Send(Welcome{3, PeerId(0)}).ok());
  ASSERT_TRUE(Until([&] { return at_b_.count() == 3; }));
  EXPECT_TRUE(at_b_.messages()[0] == Message(Welcome{1, PeerId(0)}));
}

TEST_P(ChannelCts, ClosingTellsBothEndsOnceAfterTheLastMessage) {
  a_->Start(at_a_.handler());
  b_->Start(at_b_.handler());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(a_->Send(Welcome{i, PeerId(0)}).ok());
  a_->Close(absl::ResourceExhaustedError("enough of you"));
  ASSERT_TRUE(Until([&] { return !at_a_.reasons().empty() && !at_b_.reasons().empty(); }));
  a_->Close(absl::InternalError("again"));
  b_->Close(absl::InternalError("again"));
  (void)Until([&] { return true; });
  EXPECT_EQ(at_b_.messages_at_close(), 10);
  ASSERT_EQ(at_a_.reasons().size(), 1);
  ASSERT_EQ(at_b_.reasons().size(), 1);
  EXPECT_FALSE(at_b_.reasons()[0].ok());
  EXPECT_THAT(std::string(at_a_.reasons()[0].message()), testing::HasSubstr("enough of you"));
  EXPECT_TRUE(absl::IsUnavailable(a_->Send(Welcome{1, PeerId(0)})));
  EXPECT_TRUE(absl::IsUnavailable(b_->Send(Welcome{1, PeerId(0)})));
}

TEST_P(ChannelCts, TheOtherEndHearsOfDestruction) {
  a_->Start(at_a_.handler());
  b_->Start(at_b_.handler());
  a_.reset();
  ASSERT_TRUE(Until([&] { return !at_b_.reasons().empty(); }));
  EXPECT_FALSE(at_b_.reasons()[0].ok());
  b_.reset();
  EXPECT_TRUE(at_a_.reasons().size() <= 1);
}

}  // namespace gangway::net
