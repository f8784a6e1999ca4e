// Slices that move to other devices while clients use them, and workers that leave, in simulated time.
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/sim_client.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::DeviceId;
using controller::RuntimeController;
using program_api::FunctionRef;
using testing::HasSubstr;

class RelocationTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    cluster_.network().OnDeliver([this](const std::string& worker, const std::vector<net::Message>& messages) {
      for (const net::Message& m : messages) {
        if (std::holds_alternative<net::Launch>(m)) launched_on_.insert(worker);
      }
    });
    AddWorker("w0", 2);
    AddWorker("w1", 2);
    client_ = std::make_unique<SimClient>(cluster_, controller::SessionInfo{"test", "", 1});
  }
  void AddWorker(const std::string& name, int devices, int island = 0) {
    cluster_.AddWorker(name, {.devices = devices, .link = {}, .island = island, .device_memory = 0});
    cluster_.RunFor(absl::Milliseconds(10));
  }
  // f(x); x is let go.
  ArrayId Step(const FunctionRef& function, ArrayId x) {
    return cluster_.On([&](RuntimeController& c) {
      ArrayId y = c.Execute(client_->session(), function->program->id, {x}, {})->outputs[0];
      c.Release(x);
      return y;
    });
  }
  absl::StatusOr<int32_t> Value(ArrayId array, int shard = 0, absl::Duration patience = absl::Seconds(5)) {
    return cluster_.Value(array, shard, patience);
  }
  Future<Unit> Relocate(std::vector<std::pair<int, int>> pairs) {
    resource::Relocation relocation;
    for (auto [from, to] : pairs) relocation.emplace_back(DeviceId(from), DeviceId(to));
    return cluster_.On([&](RuntimeController& c) { return c.Relocate(relocation); });
  }
  absl::Status Outcome(const Future<Unit>& future) {
    cluster_.RunFor(absl::Seconds(1));
    return future.IsReady() ? future.Await(absl::Now(), "").status() : absl::DeadlineExceededError("hangs");
  }

  SimCluster cluster_{{.seed = GetParam(), .scheduler = {.lookahead = 4}}};
  std::unique_ptr<SimClient> client_;
  std::set<std::string> launched_on_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, RelocationTest, testing::Range<uint64_t>(0, 20));

TEST_P(RelocationTest, ASliceMovesWhileItIsUsed) {
  const FunctionRef function = client_->Compile("ms=1 all_reduce", 0, 2);  // x -> 2 (x + 1)
  ArrayId x = client_->Put(function, 0);
  const ArrayId kept = client_->Put(function, 7);
  auto expected = [](int steps) { return (1 << (steps + 1)) - 2; };
  // More than the scheduler admits at once, before, during and after the move.
  for (int i = 0; i < 8; ++i) x = Step(function, x);
  const Future<Unit> moved = Relocate({{0, 2}, {1, 3}});
  for (int i = 0; i < 6; ++i) {
    x = Step(function, x);
    cluster_.RunFor(absl::Microseconds(300));
  }
  EXPECT_EQ(Outcome(moved), absl::OkStatus());
  launched_on_.clear();
  for (int i = 0; i < 6; ++i) x = Step(function, x);
  EXPECT_EQ(*Value(x, 1), expected(20));
  EXPECT_EQ(*Value(kept), 7);
  EXPECT_EQ(launched_on_, std::set<std::string>{"w1"});
  EXPECT_EQ(cluster_.StoreBuffers("w0"), 0);
  // The seats it left are free for others, and what comes next is compiled for where it is.
  const FunctionRef other = client_->Compile("ms=1", 2, 2), next = client_->Compile("ms=2", 0, 2);
  launched_on_.clear();
  EXPECT_EQ(*Value(Step(other, client_->Put(other, 1))), 2);
  EXPECT_EQ(launched_on_, std::set<std::string>{"w0"});
  EXPECT_EQ(*Value(Step(next, client_->Put(next, 1))), 2);
}

TEST_P(RelocationTest, PartOfASliceMoves) {
  const FunctionRef function = client_->Compile("ms=1 all_reduce", 0, 3);  // 3 (x + 1)
  ArrayId x = Step(function, client_->Put(function, 0));
  auto parts = cluster_.On([&](RuntimeController& c) { return c.Disassemble(client_->session(), x); });
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(Outcome(Relocate({{1, 3}})), absl::OkStatus());
  x = Step(function, x);
  EXPECT_EQ(*Value(x, 1), 12);
  EXPECT_EQ(*Value(x, 2), 12);
  EXPECT_EQ(*Value((*parts)[1]), 3);
  EXPECT_EQ(*Value((*parts)[2]), 3);
}

TEST_P(RelocationTest, OnlyToDevicesNobodyUses) {
  AddWorker("far", 1, 1);
  const FunctionRef a = client_->Compile("", 0, 1), b = client_->Compile("", 2, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Outcome(Relocate({{0, 2}}))));
  EXPECT_TRUE(absl::IsInvalidArgument(Outcome(Relocate({{0, 4}}))));
  EXPECT_TRUE(absl::IsInvalidArgument(Outcome(Relocate({{0, 9}}))));
  EXPECT_EQ(*Value(Step(a, client_->Put(a, 1))), 2);
}

TEST_P(RelocationTest, AMoveThatFailsChangesNothing) {
  const FunctionRef function = client_->Compile("ms=1", 0, 2);
  ArrayId x = client_->Put(function, 0);
  const Future<Unit> moved = Relocate({{0, 2}, {1, 3}});
  cluster_.Kill("w1");
  EXPECT_TRUE(absl::IsUnavailable(Outcome(moved)));
  EXPECT_EQ(*Value(Step(function, x)), 1);
}

TEST_P(RelocationTest, ATargetThatIsLostBeforeTheMoveEndsIt) {
  // One that loads at once and one that is told late.
  cluster_.AddWorker(
      "far", {.devices = 1, .link = {.min_delay = absl::Milliseconds(50), .max_delay = absl::Milliseconds(50)}});
  cluster_.RunFor(absl::Seconds(1));
  const FunctionRef function = client_->Compile("ms=1", 0, 2);
  const ArrayId x = client_->Put(function, 7);
  const Future<Unit> moved = Relocate({{0, 2}, {1, 4}});
  cluster_.RunFor(absl::Milliseconds(20));
  cluster_.Kill("w1");
  cluster_.RunFor(absl::Milliseconds(10));
  AddWorker("w1", 2);
  EXPECT_TRUE(absl::IsUnavailable(Outcome(moved)));
  EXPECT_EQ(*Value(Step(function, x)), 8);
}

TEST_P(RelocationTest, AWorkerThatLeavesAnswersFirst) {
  const absl::Duration hop = absl::Milliseconds(50);
  cluster_.AddWorker("slow", {.devices = 1, .link = {.min_delay = hop, .max_delay = hop}});
  cluster_.RunFor(absl::Seconds(1));
  const ArrayId x = *cluster_.Put(client_->session(), Shape::Scalar(DType::kS32), {DeviceId(4)}, 3);
  EXPECT_EQ(*Value(x), 3);
  cluster_.Leave("slow");
  cluster_.RunFor(hop - absl::Milliseconds(10));
  const auto bytes = cluster_.On([&](RuntimeController& c) {
    auto read = c.Fetch(x, 0);
    c.Release(x);
    return read;
  });
  cluster_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(bytes.IsReady());
  EXPECT_EQ(bytes.Await(absl::InfinitePast(), "").status(), absl::OkStatus());
  EXPECT_FALSE(cluster_.IsConnected("slow"));
}

TEST_P(RelocationTest, AWorkerLeavesWhenItsSlicesHaveMoved) {
  const FunctionRef slow = client_->Compile("ms=200", 0, 2), quick = client_->Compile("ms=1", 0, 2);
  ArrayId x = client_->Put(slow, 0);
  ArrayId y = Step(slow, x);  // is running
  cluster_.RunFor(absl::Milliseconds(20));
  cluster_.Leave("w0");
  cluster_.RunFor(absl::Milliseconds(60));
  EXPECT_TRUE(cluster_.IsConnected("w0")) << "what runs is finished first";
  for (int i = 0; i < 5; ++i) y = Step(quick, y);
  EXPECT_EQ(*Value(y, 1), 6);
  EXPECT_FALSE(cluster_.IsConnected("w0"));
  for (int i = 0; i < 5; ++i) y = Step(quick, y);
  EXPECT_EQ(*Value(y), 11);
}

TEST_P(RelocationTest, NewSlicesAvoidAWorkerThatLeaves) {
  const FunctionRef function = client_->Compile("", 2, 2);  // w1 is in use: no room for what w0 has
  const FunctionRef held = client_->Compile("", 0, 1);
  cluster_.Leave("w0");
  cluster_.RunFor(absl::Seconds(1));
  auto slice = [&](int devices) {
    return cluster_.On([&](RuntimeController& c) {
      return c.MakeSlice(client_->session(), {.devices = devices, .island = {}, .policy = ""});
    });
  };
  EXPECT_EQ(*slice(2), (std::vector<DeviceId>{DeviceId(2), DeviceId(3)}));
  EXPECT_FALSE(slice(3).ok());
  AddWorker("w2", 4);
  EXPECT_TRUE(slice(3).ok()) << "one that joins is used";
  EXPECT_EQ(*Value(Step(held, client_->Put(held, 1))), 2);
  EXPECT_FALSE(cluster_.IsConnected("w0"));
}

TEST_P(RelocationTest, WithoutRoomAWorkerLeavesAfterAWhile) {
  const FunctionRef a = client_->Compile("", 0, 2), b = client_->Compile("", 2, 2);
  const ArrayId x = client_->Put(a, 1), y = client_->Put(b, 2);
  cluster_.Leave("w0");
  cluster_.RunFor(absl::Seconds(30));
  EXPECT_EQ(*Value(x), 1);
  cluster_.RunFor(absl::Seconds(60));
  EXPECT_FALSE(cluster_.IsConnected("w0"));
  EXPECT_THAT(std::string(Value(x).status().message()), HasSubstr("it has left with devices in use"));
  EXPECT_EQ(*Value(y), 2);
}

}  // namespace
}  // namespace gangway
