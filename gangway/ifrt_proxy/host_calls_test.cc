#include "gangway/ifrt_proxy/host_calls.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::ifrt_proxy {
namespace {

using controller::DeviceId;
using controller::HostCall;
using controller::ProgramId;

class HostCallsTest : public testing::Test {
 protected:
  SharedBytes Text(std::string text) { return std::make_shared<const std::string>(std::move(text)); }
  void Call(int callback, std::string operands) {
    calls_.Call({kProgram, kDevice, callback, Text(std::move(operands)),
                 [this](absl::StatusOr<SharedBytes> answer) { answers_.push_back(std::move(answer)); }});
  }
  void Poll(uint64_t callback, uint64_t buffer) {
    calls_.Answer(callback, {buffer, [this](std::optional<uint64_t> execution) { polls_.push_back(execution); },
                             [this](const absl::Status& status) { failures_.push_back(status); }});
  }

  static constexpr ProgramId kProgram{3};
  static constexpr DeviceId kDevice{2};
  std::shared_ptr<HostBuffers> buffers_ = std::make_shared<HostBuffers>(1 << 20);
  uint64_t next_ = 100;
  HostCalls calls_{buffers_, [this] { return next_++; }};
  std::vector<absl::StatusOr<SharedBytes>> answers_;
  std::vector<std::optional<uint64_t>> polls_;
  std::vector<absl::Status> failures_;
};

TEST_F(HostCallsTest, ACallMeetsAPollInEitherOrder) {
  const std::vector<uint64_t> handles = calls_.Add(kProgram, {7, 8});
  ASSERT_EQ(handles.size(), 2u);
  Poll(handles[1], 9);
  EXPECT_TRUE(polls_.empty());
  Call(1, "operands");
  ASSERT_EQ(polls_.size(), 1u);
  EXPECT_EQ(**buffers_->Take(9), "operands");
  ASSERT_TRUE(calls_.Return(*polls_[0], Text("results")).ok());
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(**answers_[0], "results");

  Call(0, "early");
  EXPECT_EQ(polls_.size(), 1u);
  Poll(handles[0], 10);
  ASSERT_EQ(polls_.size(), 2u);
  EXPECT_EQ(**buffers_->Take(10), "early");
}

TEST_F(HostCallsTest, ErrorsReachTheProgram) {
  const std::vector<uint64_t> handles = calls_.Add(kProgram, {7});
  Poll(handles[0], 9);
  Call(0, "");
  ASSERT_TRUE(calls_.Return(*polls_[0], absl::InternalError("no")).ok());
  EXPECT_EQ(answers_[0].status(), absl::InternalError("no"));
  EXPECT_TRUE(absl::IsNotFound(calls_.Return(*polls_[0], Text("twice"))));
  Call(5, "");
  EXPECT_TRUE(absl::IsNotFound(answers_[1].status()));
}

TEST_F(HostCallsTest, ADroppedProgramIsServedUntilItsExecutionsAreOver) {
  const std::vector<uint64_t> handles = calls_.Add(kProgram, {7});
  calls_.Begin(kProgram);
  calls_.Drop(kProgram);
  Poll(handles[0], 9);
  Call(0, "x");
  ASSERT_EQ(polls_.size(), 1u);
  ASSERT_TRUE(calls_.Return(*polls_[0], Text("y")).ok());
  Poll(handles[0], 10);
  calls_.End(kProgram);
  ASSERT_EQ(polls_.size(), 2u);
  EXPECT_EQ(polls_[1], std::nullopt);
  Poll(handles[0], 11);
  EXPECT_EQ(polls_[2], std::nullopt);
}

TEST_F(HostCallsTest, WhenTheClientGoesEveryCallIsAnswered) {
  const std::vector<uint64_t> handles = calls_.Add(kProgram, {7});
  Poll(handles[0], 9);
  Call(0, "executing");
  Call(0, "waiting");
  calls_.Close(absl::CancelledError("gone"));
  ASSERT_EQ(answers_.size(), 2u);
  for (const auto& answer : answers_) EXPECT_EQ(answer.status(), absl::CancelledError("gone"));
}

TEST_F(HostCallsTest, WithAConnectionCallsAreSent) {
  calls_.Add(kProgram, {7, 8});
  Call(1, "early");
  std::vector<HostCalls::Outgoing> sent;
  calls_.Connect([&](HostCalls::Outgoing call) { sent.push_back(std::move(call)); });
  Call(0, "x");
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].function, 8u);
  EXPECT_EQ(sent[1].function, 7u);
  EXPECT_EQ(sent[1].device, kDevice.value());
  ASSERT_TRUE(calls_.Return(sent[1].execution, Text("y")).ok());
  EXPECT_EQ(**answers_[0], "y");
  calls_.Disconnect(1);
  ASSERT_EQ(answers_.size(), 2u);
  EXPECT_TRUE(absl::IsUnavailable(answers_[1].status()));
}

TEST_F(HostCallsTest, WithoutTheConnectionThereWasNobodyAnswers) {
  calls_.Add(kProgram, {7});
  const int first = calls_.Connect([](const HostCalls::Outgoing&) {});
  calls_.Disconnect(first);
  Call(0, "x");
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(answers_[0].status()));
  // That one's end is none of the next one's.
  int sent = 0;
  calls_.Connect([&sent](const HostCalls::Outgoing&) { ++sent; });
  calls_.Disconnect(first);
  Call(0, "y");
  EXPECT_EQ(sent, 1);
}

TEST_F(HostCallsTest, ASecondPollIsRefused) {
  const std::vector<uint64_t> handles = calls_.Add(kProgram, {7});
  Poll(handles[0], 9);
  Poll(handles[0], 10);
  EXPECT_EQ(failures_.size(), 1u);
}

TEST_F(HostCallsTest, WhatBelongsToNoProgramNeedsAConnection) {
  const auto ask = [this] {
    calls_.Ask(5, Text("what"), [this](absl::StatusOr<SharedBytes> answer) { answers_.push_back(std::move(answer)); });
  };
  ask();
  EXPECT_TRUE(absl::IsUnavailable(answers_.at(0).status()));
  uint64_t sent = 0;
  calls_.Connect([&](HostCalls::Outgoing call) {
    EXPECT_EQ(call.function, 5u);
    EXPECT_EQ(call.device, -1);
    EXPECT_EQ(*call.operands, "what");
    sent = call.execution;
  });
  ask();
  ASSERT_TRUE(calls_.Return(sent, Text("that")).ok());
  EXPECT_EQ(**answers_.at(1), "that");
  ask();
  calls_.Disconnect(1);
  EXPECT_TRUE(absl::IsUnavailable(answers_.at(2).status()));
}

}  // namespace
}  // namespace gangway::ifrt_proxy
