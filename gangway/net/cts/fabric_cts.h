// What every fabric must do. A backend's test includes this and instantiates FabricCts with a maker of fabrics that
// reach each other.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gangway/net/fabric.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::net {

// Both ends, connected: number 0 and number 1.
using MakeFabricPair = std::function<std::pair<std::shared_ptr<Fabric>, std::shared_ptr<Fabric>>()>;

// One outcome, waited for.
class Outcome {
 public:
  Fabric::Done done() {
    return [state = state_](const absl::Status& status) {
      state->status = status;
      state->done.Notify();
    };
  }
  bool ready() const { return state_->done.HasBeenNotified(); }
  absl::Status Await() const {
    if (!state_->done.WaitForNotificationWithTimeout(absl::Seconds(20)))
      return absl::DeadlineExceededError("no answer");
    return state_->status;
  }

 private:
  struct State {
    absl::Notification done;
    absl::Status status;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class FabricCts : public testing::TestWithParam<MakeFabricPair> {
 protected:
  void SetUp() override { std::tie(a_, b_) = GetParam()(); }

  static std::string Pattern(size_t size, int seed) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251 + seed);
    return bytes;
  }

  std::shared_ptr<Fabric> a_, b_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricCts);

TEST_P(FabricCts, ParcelsOfAllSizesEarlyAndLate) {
  const std::vector<size_t> sizes = {0, 1, 8, 1000, 8192, 100000, 1 << 20, (32 << 20) + 3};
  for (bool early : {false, true}) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      const ParcelLabel label{uint64_t{early} + 1, i, 0, 0};
      const std::string sent = Pattern(sizes[i], static_cast<int>(i));
      std::string received(sizes[i], 'x');
      Outcome send, receive;
      auto start_receive = [&] { b_->Receive(PeerId(0), label, received.data(), received.size(), receive.done()); };
      if (!early) start_receive();
      a_->Send(PeerId(1), label, sent.data(), sent.size(), send.done());
      if (early) {
        absl::SleepFor(absl::Milliseconds(5));
        start_receive();
      }
      ASSERT_EQ(receive.Await(), absl::OkStatus()) << sizes[i];
      ASSERT_EQ(send.Await(), absl::OkStatus()) << sizes[i];
      ASSERT_TRUE(received == sent) << sizes[i];
    }
  }
}

TEST_P(FabricCts, MatchedByLabelNotByOrder) {
  constexpr int kCount = 200;
  std::vector<std::string> sent, received(kCount, std::string(600, 'x'));
  std::vector<Outcome> outcomes(2 * kCount);
  for (int i = 0; i < kCount; ++i) sent.push_back(Pattern(600, i));
  for (int i = 0; i < kCount; ++i) {
    b_->Receive(PeerId(0), {1, 2, static_cast<uint64_t>(i), 3}, received[i].data(), 600, outcomes[i].done());
  }
  for (int i = kCount - 1; i >= 0; --i) {
    a_->Send(PeerId(1), {1, 2, static_cast<uint64_t>(i), 3}, sent[i].data(), 600, outcomes[kCount + i].done());
  }
  for (Outcome& outcome : outcomes) ASSERT_EQ(outcome.Await(), absl::OkStatus());
  EXPECT_EQ(received, sent);
}

TEST_P(FabricCts, BothDirectionsAtOnce) {
  const std::string one = Pattern(3 << 20, 1), two = Pattern(3 << 20, 2);
  std::string at_a(two.size(), ' '), at_b(one.size(), ' ');
  Outcome outcomes[4];
  a_->Receive(PeerId(1), {9, 0, 0, 0}, at_a.data(), at_a.size(), outcomes[0].done());
  b_->Receive(PeerId(0), {9, 0, 0, 0}, at_b.data(), at_b.size(), outcomes[1].done());
  a_->Send(PeerId(1), {9, 0, 0, 0}, one.data(), one.size(), outcomes[2].done());
  b_->Send(PeerId(0), {9, 0, 0, 0}, two.data(), two.size(), outcomes[3].done());
  for (Outcome& outcome : outcomes) ASSERT_EQ(outcome.Await(), absl::OkStatus());
  EXPECT_TRUE(at_a == two);
  EXPECT_TRUE(at_b == one);
}

// What comes is had by whoever looks out for it or by the fabric's own thread, whichever is awake.
TEST_P(FabricCts, NothingIsLostBetweenLookouts) {
  constexpr int kCount = 300;
  const std::string sent = Pattern(600, 3);
  Outcome sends[kCount];
  std::thread sender([&] {
    for (int i = 0; i < kCount; ++i) {
      if (i % 20 == 0) absl::SleepFor(absl::Milliseconds(1));  // longer than anybody looks out
      a_->Send(PeerId(1), {1, static_cast<uint64_t>(i), 0, 0}, sent.data(), sent.size(), sends[i].done());
    }
  });
  for (int i = 0; i < kCount; ++i) {
    std::string received(600, 'x');
    Outcome outcome;
    b_->Receive(PeerId(0), {1, static_cast<uint64_t>(i), 0, 0}, received.data(), 600, outcome.done());
    if (i % 3 != 0) b_->LookOut([&] { return outcome.ready(); });
    ASSERT_EQ(outcome.Await(), absl::OkStatus());
    ASSERT_EQ(received, sent);
  }
  sender.join();
  for (Outcome& outcome : sends) ASSERT_EQ(outcome.Await(), absl::OkStatus());
}

TEST_P(FabricCts, ALookoutEnds) {
  b_->LookOut([] { return false; });  // nothing is awaited
  char room = 0;
  Outcome never;
  b_->Receive(PeerId(0), {1, 0, 0, 0}, &room, 1, never.done());
  b_->LookOut([] { return true; });
  b_->LookOut([] { return false; });  // nothing comes
  b_->Disconnect(PeerId(0), absl::UnavailableError("a fell over"));
  EXPECT_EQ(never.Await().message(), "a fell over");
}

TEST_P(FabricCts, AnotherSizeIsAnError) {
  std::string bytes(10, 'a');
  Outcome send, receive;
  a_->Send(PeerId(1), {1, 1, 1, 1}, bytes.data(), 10, send.done());
  std::string room(11, ' ');
  b_->Receive(PeerId(0), {1, 1, 1, 1}, room.data(), 11, receive.done());
  EXPECT_EQ(receive.Await().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(send.Await().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(FabricCts, AnAbandonedSubjectReceivesNothing) {
  std::string room(10, ' ');
  Outcome waiting, later, other;
  b_->Receive(PeerId(0), {5, 1, 0, 0}, room.data(), 10, waiting.done());
  b_->Abandon(5, absl::InternalError("device 3 fell over"));
  EXPECT_EQ(waiting.Await().message(), "device 3 fell over");
  b_->Receive(PeerId(0), {5, 2, 0, 0}, room.data(), 10, later.done());
  EXPECT_EQ(later.Await().message(), "device 3 fell over");
  // Large enough for a rendezvous, which nobody takes up.
  const std::string large = Pattern(1 << 20, 0);
  Outcome dropped;
  a_->Send(PeerId(1), {5, 3, 0, 0}, large.data(), large.size(), dropped.done());
  a_->Send(PeerId(1), {6, 1, 0, 0}, large.data(), 10, other.done());
  std::string fine(10, ' ');
  Outcome received;
  b_->Receive(PeerId(0), {6, 1, 0, 0}, fine.data(), 10, received.done());
  EXPECT_EQ(received.Await(), absl::OkStatus());
  // What is sent stays until then.
  EXPECT_EQ(other.Await(), absl::OkStatus());
  EXPECT_NE(dropped.Await().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(FabricCts, DisconnectingEndsWhatWaits) {
  std::string room(10, ' ');
  Outcome waiting, later, send;
  b_->Receive(PeerId(0), {5, 1, 0, 0}, room.data(), 10, waiting.done());
  b_->Disconnect(PeerId(0), absl::UnavailableError("worker a is lost"));
  EXPECT_EQ(waiting.Await().message(), "worker a is lost");
  b_->Receive(PeerId(0), {5, 2, 0, 0}, room.data(), 10, later.done());
  EXPECT_EQ(later.Await().message(), "worker a is lost");
  b_->Send(PeerId(0), {5, 2, 0, 0}, room.data(), 10, send.done());
  EXPECT_EQ(send.Await().message(), "worker a is lost");
}

TEST_P(FabricCts, LargeParcelsEndWithTheirPeer) {
  const std::string bytes = Pattern(8 << 20, 1);
  std::vector<Outcome> sent(3), received(3);
  std::vector<std::string> rooms(3, std::string(bytes.size(), '\0'));
  const auto send = [&](int i) {
    a_->Send(PeerId(1), {1, static_cast<uint64_t>(i), 0, 0}, bytes.data(), bytes.size(), sent[i].done());
  };
  const auto receive = [&](int i) {
    b_->Receive(PeerId(0), {1, static_cast<uint64_t>(i), 0, 0}, rooms[i].data(), bytes.size(), received[i].done());
  };
  send(0);  // nobody wants it before the end
  send(1);  // under way when the end comes, or over
  receive(1);
  receive(2);  // never sent
  a_->Disconnect(PeerId(1), absl::UnavailableError("b is lost"));
  b_->Disconnect(PeerId(0), absl::UnavailableError("a is lost"));
  // A fabric may hold what it sends.
  for (int i : {0, 1}) EXPECT_TRUE(sent[i].Await().ok() || absl::IsUnavailable(sent[i].Await()));
  const absl::Status outcome = received[1].Await();
  EXPECT_TRUE(!outcome.ok() || rooms[1] == bytes) << "something else was received";
  EXPECT_EQ(received[2].Await().code(), absl::StatusCode::kUnavailable);
}

// The memory belongs to somebody else by then.
TEST_P(FabricCts, NothingIsWrittenBehindAReceiveThatIsOver) {
  const std::string bytes = Pattern(64 << 20, 1);
  std::string room(bytes.size(), '\0');
  for (uint64_t round = 0; round < 6; ++round) {
    Outcome sent, received;
    a_->Send(PeerId(1), {round, 0, 0, 0}, bytes.data(), bytes.size(), sent.done());
    b_->Receive(PeerId(0), {round, 0, 0, 0}, room.data(), room.size(), received.done());
    absl::SleepFor(absl::Milliseconds(round));  // under way, mostly
    b_->Disconnect(PeerId(0), absl::UnavailableError("worker a is lost"));
    EXPECT_NE(received.Await().code(), absl::StatusCode::kDeadlineExceeded);
    std::fill(room.begin(), room.end(), 'x');
    absl::SleepFor(absl::Milliseconds(50));  // for what may still come
    EXPECT_EQ(room.find_first_not_of('x'), std::string::npos) << round;
    a_->Disconnect(PeerId(1), absl::UnavailableError("worker b is lost"));
    EXPECT_NE(sent.Await().code(), absl::StatusCode::kDeadlineExceeded);
    a_->Connect(PeerId(1), "b", b_->address());
    b_->Connect(PeerId(0), "a", a_->address());
  }
}

TEST_P(FabricCts, AnAbandonedLargeParcelFreesItsSender) {
  const std::string bytes = Pattern(8 << 20, 2);
  Outcome sent, small, received;
  a_->Send(PeerId(1), {1, 0, 0, 0}, bytes.data(), bytes.size(), sent.done());
  // It has arrived when one that was sent after it has.
  char room = 0;
  a_->Send(PeerId(1), {2, 0, 0, 0}, "x", 1, small.done());
  b_->Receive(PeerId(0), {2, 0, 0, 0}, &room, 1, received.done());
  EXPECT_TRUE(received.Await().ok());
  b_->Abandon(1, absl::CancelledError("nobody wants it"));
  EXPECT_NE(sent.Await().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(small.Await(), absl::OkStatus());
}

TEST_P(FabricCts, WhoWasLostBeginsAnew) {
  const std::string sent = Pattern(600, 1);
  std::string room(600, ' ');
  for (uint64_t round = 0; round < 2; ++round) {
    Outcome send, receive, waiting;
    b_->Receive(PeerId(0), {round, 0, 0, 0}, room.data(), room.size(), receive.done());
    a_->Send(PeerId(1), {round, 0, 0, 0}, sent.data(), sent.size(), send.done());
    ASSERT_EQ(send.Await(), absl::OkStatus());
    ASSERT_EQ(receive.Await(), absl::OkStatus()) << round;
    a_->Receive(PeerId(1), {round, 1, 0, 0}, room.data(), room.size(), waiting.done());
    b_->Disconnect(PeerId(0), absl::UnavailableError("worker a is lost"));
    a_->DisconnectAll(absl::CancelledError("the controller is gone"));
    ASSERT_EQ(waiting.Await().message(), "the controller is gone");
    a_->Connect(PeerId(1), "b", b_->address());
    b_->Connect(PeerId(0), "a", a_->address());
  }
}

TEST_P(FabricCts, WhoComesBackMayBeHeardBeforeItIsKnown) {
  const std::string sent = Pattern(600, 1);
  std::string room(600, ' ');
  Outcome first, old, back, receive;
  b_->Receive(PeerId(0), {5, 0, 0, 0}, room.data(), room.size(), first.done());
  b_->Disconnect(PeerId(0), absl::UnavailableError("worker a is lost"));
  ASSERT_EQ(first.Await().message(), "worker a is lost");
  a_->DisconnectAll(absl::CancelledError("the controller is gone"));
  a_->Connect(PeerId(1), "b", b_->address());
  a_->Send(PeerId(1), {5, 0, 0, 0}, sent.data(), sent.size(), old.done());
  a_->Send(PeerId(1), {6, 0, 0, 0}, sent.data(), sent.size(), back.done());
  ASSERT_EQ(back.Await(), absl::OkStatus());
  absl::SleepFor(absl::Milliseconds(20));  // until it is there
  b_->Connect(PeerId(0), "a", a_->address());
  b_->Receive(PeerId(0), {6, 0, 0, 0}, room.data(), room.size(), receive.done());
  EXPECT_EQ(receive.Await(), absl::OkStatus());
  EXPECT_EQ(room, sent);
  EXPECT_NE(old.Await().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace gangway::net
