// What sessions see of the controller, over a cluster in simulated time.
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/sim_cluster.h"

namespace gangway::controller {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ClusterTest : public testing::TestWithParam<uint64_t> {
 protected:
  void AddWorker(const std::string& name, int devices, int rank = -1) {
    cluster_.AddWorker(name, {.devices = devices, .rank = rank});
    Run();
  }
  void Run(absl::Duration span = absl::Milliseconds(100)) { cluster_.RunFor(span); }
  template <typename F>
  auto On(F f) {
    return cluster_.On(f);
  }

  std::vector<DeviceId> Devices(int first, int count) {
    std::vector<DeviceId> devices;
    for (int i = 0; i < count; ++i) devices.push_back(DeviceId(first + i));
    return devices;
  }
  ArraySpec Scalar(std::vector<DeviceId> devices) {
    ArraySpec spec;
    spec.dtype = DType::kS32;
    spec.devices = std::move(devices);
    spec.shard_dims = {DimVector{}};
    return spec;
  }
  absl::StatusOr<ArrayId> Make(SessionId session, int first, int count, int32_t value) {
    return cluster_.Put(session, Shape::Scalar(DType::kS32), Devices(first, count), value);
  }
  ProgramId Compile(SessionId session, const std::string& text, int first, int count) {
    CompileRequest request;
    request.artifact = absl::StrCat(text, "|name=jit_test");
    request.devices = Devices(first, count);
    request.options.num_partitions = count;
    auto [id, ready] = On([&](Controller& c) { return c.Compile(session, request); });
    Run();
    compile_status_ = ready.IsReady() ? ready.Await(absl::Now(), "").status() : absl::UnknownError("not ready");
    return id;
  }
  absl::StatusOr<ExecuteResult> Execute(SessionId session, ProgramId program, std::vector<ArrayId> arguments,
                                        ExecuteOptions options = {}) {
    return On([&](Controller& c) { return c.Execute(session, program, arguments, options); });
  }
  absl::StatusOr<int32_t> Value(ArrayId array, int shard = 0, absl::Duration span = absl::Milliseconds(100)) {
    return cluster_.Value(array, shard, span);
  }
  absl::Status ReadyStatus(ArrayId array, absl::Duration span = absl::Milliseconds(100)) {
    auto future = On([&](Controller& c) { return c.Ready(array); });
    Run(span);
    return future.IsReady() ? future.Await(absl::Now(), "").status() : absl::DeadlineExceededError("not ready");
  }
  SessionId Open(std::string name = "s") {
    return On([&](Controller& c) { return c.OpenSession({name, "", 1}); });
  }
  Statistics Stats() {
    Run();
    return On([](Controller& c) { return c.Stats(); });
  }

  SimCluster cluster_{{.seed = GetParam(), .scheduler = {.lookahead = 4}}};
  absl::Status compile_status_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, ClusterTest, testing::Range<uint64_t>(0, 20));

TEST_P(ClusterTest, ChainsOfLaunchesRunWithoutWaiting) {
  AddWorker("w0", 8);
  SessionId session = Open();
  ProgramId program = Compile(session, "all_reduce ms=0.1", 0, 8);
  ASSERT_TRUE(compile_status_.ok()) << compile_status_;
  ArrayId x = *Make(session, 0, 8, 1);
  // x -> 8 * (x + 1), over and over; all submitted before anything ran.
  int32_t expected = 1;
  for (int i = 0; i < 8; ++i) {
    auto result = Execute(session, program, {x}, {.non_donatable = {}, .notify = false});
    ASSERT_TRUE(result.ok()) << result.status();
    On([&](Controller& c) { return c.Release(x), 0; });
    x = result->outputs[0];
    expected = 8 * (expected + 1);
  }
  EXPECT_EQ(*Value(x, 3), expected);
  EXPECT_TRUE(ReadyStatus(x).ok());
  Statistics stats = Stats();
  EXPECT_EQ(stats.pending_launches, 0);
  EXPECT_EQ(stats.arrays, 1);
  EXPECT_EQ(stats.store_bytes, 8 * 4);
  EXPECT_EQ(cluster_.controller().dispatch_counts().launch_messages, 8) << "one message per worker and launch";
  On([&](Controller& c) { return c.CloseSession(session), 0; });
  stats = Stats();
  EXPECT_EQ(stats.arrays + stats.programs + stats.sessions + stats.store_bytes, 0);
  EXPECT_EQ(cluster_.StoreBuffers(), 0);
}

TEST_P(ClusterTest, WorkersJoinInTheOrderOfTheirRanks) {
  AddWorker("second", 2, 1);
  Run(absl::Seconds(5));  // heartbeats of one that is not yet in
  EXPECT_TRUE(On([](Controller& c) { return c.devices(); }).empty());
  AddWorker("first", 1, 0);
  const std::vector<DeviceInfo> devices = On([](Controller& c) { return c.devices(); });
  ASSERT_EQ(devices.size(), 3);
  EXPECT_EQ(devices[0].worker, "first");
  EXPECT_EQ(devices[1].worker, "second");
}

TEST_P(ClusterTest, AWorkerThatWaitsForItsTurnMayStartAgain) {
  AddWorker("w1", 1, /*rank=*/1);
  cluster_.Kill("w1");
  Run();
  AddWorker("w1", 1, /*rank=*/1);
  AddWorker("w0", 1, /*rank=*/0);
  const auto devices = On([](Controller& c) { return c.devices(); });
  ASSERT_EQ(devices.size(), 2);
  EXPECT_EQ(devices[0].worker, "w0");
  EXPECT_EQ(devices[1].worker, "w1");
}

TEST_P(ClusterTest, WhatIsReadEveryTimeComesByItself) {
  AddWorker("w0", 2);
  int asked = 0;
  cluster_.network().OnDeliver([&](const std::string&, const std::vector<net::Message>& messages) {
    for (const net::Message& m : messages) asked += std::holds_alternative<net::FetchShard>(m);
  });
  SessionId session = Open();
  ProgramId program = Compile(session, "outputs=2", 0, 2);
  ArrayId x = *Make(session, 0, 2, 1);
  auto read = [&](ArrayId array) { return On([&](Controller& c) { return c.Fetch(array, 0); }); };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*Value(Execute(session, program, {x})->outputs[1]), 2);
  auto result = Execute(session, program, {x});
  Run();
  EXPECT_FALSE(read(result->outputs[0]).IsReady());
  EXPECT_TRUE(read(result->outputs[1]).IsReady()) << "it came along";
  auto view = On([&](Controller& c) { return c.ViewShard(session, result->outputs[1], 0); });
  EXPECT_TRUE(read(*view).IsReady());
  Run();
  // Nobody reads any more: soon nothing is sent in vain.
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Execute(session, program, {x}).ok());
  Run();
  asked = 0;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Execute(session, program, {x}).ok());
  Run();
  EXPECT_EQ(asked, 0);
}

TEST_P(ClusterTest, DonationDeletesUnlessTold) {
  AddWorker("w0", 2);
  SessionId session = Open();
  ProgramId program = Compile(session, "|params=2|donate=0", 0, 2);
  ASSERT_TRUE(compile_status_.ok()) << compile_status_;
  ArrayId x = *Make(session, 0, 2, 1), y = *Make(session, 0, 2, 10);
  ASSERT_TRUE(Execute(session, program, {x, y}, {.non_donatable = {0}, .notify = true}).ok());
  EXPECT_EQ(*Value(x), 1);
  EXPECT_FALSE(Execute(session, program, {x, x}).ok());
  auto result = Execute(session, program, {x, y});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(*On([&](Controller& c) { return c.IsDeleted(x); }));
  EXPECT_TRUE(absl::IsInvalidArgument(Execute(session, program, {x, y}).status()));
  EXPECT_EQ(*Value(result->outputs[0]), 12);
  EXPECT_THAT(std::string(Execute(session, program, {y}).status().message()), HasSubstr("takes 2 arguments, got 1"));
}

// What is asked for waits for the same transfer as the launch that takes the array by donation.
TEST_P(ClusterTest, WhatWasAskedForBeforeItWasDonatedArrives) {
  AddWorker("w0", 1);
  AddWorker("w1", 2);
  SessionId session = Open();
  const ProgramId plain = Compile(session, "ms=1", 1, 1), donates = Compile(session, "donates=0|donate=0", 1, 1);
  const ArrayId x = *Make(session, 0, 1, 5);
  ArrayId copy, result;
  const auto bytes = On([&](Controller& c) {
    const ArrayId there = *c.Copy(session, x, {DeviceId(1)}, {}, CopySemantics::kShare);
    const ArrayId y = c.Execute(session, plain, {there}, {})->outputs[0];
    auto read = c.Fetch(y, 0);
    copy = *c.Copy(session, y, {DeviceId(2)}, {}, CopySemantics::kShare);
    result = c.Execute(session, donates, {y}, {})->outputs[0];
    return read;
  });
  EXPECT_EQ(*Value(result), 7);
  EXPECT_EQ(*Value(copy), 6);
  ASSERT_TRUE(bytes.IsReady());
  EXPECT_EQ(bytes.Await(absl::InfinitePast(), "").status(), absl::OkStatus());
}

TEST_P(ClusterTest, AShardIsGoneForAllWhoHaveIt) {
  AddWorker("w0", 2);
  SessionId session = Open();
  ProgramId on_both = Compile(session, "|params=1|donate=0", 0, 2),
            on_one = Compile(session, "|params=1|donate=0", 0, 1);
  ProgramId of_two = Compile(session, "|params=2|donate=0", 0, 2);
  const auto copy = [&](ArrayId array, CopySemantics semantics) {
    return *On([&](Controller& c) { return c.Copy(session, array, {}, {}, semantics); });
  };
  const auto gone = [&](ArrayId array) { return *On([&](Controller& c) { return c.IsDeleted(array); }); };
  ArrayId x = *Make(session, 0, 2, 1);
  auto parts = *On([&](Controller& c) { return c.Disassemble(session, x); });
  const ArrayId view = copy(x, CopySemantics::kShare), own = copy(x, CopySemantics::kCopy);
  EXPECT_FALSE(Execute(session, of_two, {x, view}).ok()) << "donated and used by another argument";
  ASSERT_TRUE(Execute(session, of_two, {own, x}).ok());
  EXPECT_FALSE(gone(x));
  // One shard goes with its part; the other is still there, though no longer as part of the whole.
  ASSERT_TRUE(Execute(session, on_one, {parts[0]}).ok());
  EXPECT_TRUE(gone(parts[0]) && gone(x) && gone(view));
  EXPECT_FALSE(gone(parts[1]));
  EXPECT_EQ(*Value(parts[1]), 1);
  EXPECT_FALSE(Execute(session, on_both, {x}).ok());
  EXPECT_FALSE(Value(view).ok());
  // Handed over, not deleted.
  ArrayId y = *Make(session, 0, 2, 5);
  const ArrayId same = copy(y, CopySemantics::kDonate);
  EXPECT_FALSE(gone(y));
  auto moved = On([&](Controller& c) {
    return c.Copy(session, y, {DeviceId(1), DeviceId(0)}, {}, CopySemantics::kDonate);
  });
  ASSERT_TRUE(moved.ok());
  EXPECT_TRUE(gone(y));
  EXPECT_EQ(*Value(same), 5);
  EXPECT_EQ(*Value(*moved), 5);
}

TEST_P(ClusterTest, AFailurePoisonsWhatFollowsAndNothingElse) {
  AddWorker("w0", 4);
  SessionId session = Open();
  ProgramId bad = Compile(session, "fail all_reduce", 0, 4);
  ProgramId good = Compile(session, "all_reduce", 0, 4);
  ArrayId x = *Make(session, 0, 4, 1);
  auto failed = Execute(session, bad, {x});
  auto after = Execute(session, good, {failed->outputs[0]});
  auto fine = Execute(session, good, {x});
  EXPECT_THAT(std::string(ReadyStatus(after->outputs[0]).message()), StartsWith("program jit_test fails"));
  EXPECT_FALSE(Value(failed->outputs[0]).ok());
  EXPECT_EQ(*Value(fine->outputs[0]), 8);
  // One broken device fails its gang, also on the devices that work.
  cluster_.BreakDevice("w0", 2, true);
  auto broken = Execute(session, good, {x});
  EXPECT_THAT(std::string(ReadyStatus(broken->outputs[0]).message()), HasSubstr("device 2 is broken"));
  cluster_.BreakDevice("w0", 2, false);
  EXPECT_EQ(*Value(Execute(session, good, {x})->outputs[0]), 8);
  EXPECT_EQ(Stats().pending_launches, 0);
}

TEST_P(ClusterTest, CompileErrorsReachTheFuture) {
  AddWorker("w0", 2);
  SessionId session = Open();
  ProgramId refused = Compile(session, "x|refuse", 0, 2);
  EXPECT_THAT(std::string(compile_status_.message()), HasSubstr("%refuse"));
  EXPECT_FALSE(Execute(session, refused, {}).ok());
  Compile(session, "malformed", 0, 2);
  EXPECT_THAT(std::string(compile_status_.message()), HasSubstr("worker w0: modelled program: malformed"));
  Compile(session, "", 0, 3);
  EXPECT_THAT(std::string(compile_status_.message()), HasSubstr("no device 2"));
  ProgramId once = Compile(session, "ms=1", 0, 2), again = Compile(session, "ms=1", 0, 2);
  EXPECT_TRUE(once == again) << "cached by content";
  On([&](Controller& c) { return c.ReleaseProgram(session, once), 0; });
  EXPECT_TRUE(Execute(session, again, {*Make(session, 0, 2, 1)}).ok());
}

TEST_P(ClusterTest, AFailedProgramMayBeReleasedByWhoeverHearsOfIt) {
  AddWorker("w0", 2);
  AddWorker("w1", 2);
  SessionId session = Open();
  for (std::string text : {"x|refuse", "malformed", "ms=1"}) {
    CompileRequest request;
    request.artifact = text;
    request.devices = Devices(0, 4);  // of both workers
    request.options.num_partitions = 4;
    bool heard = false;
    On([&](Controller& c) {
      auto [id, ready] = c.Compile(session, request);
      ready.OnReady([&, id = id](const auto&) {
        heard = true;
        c.ReleaseProgram(session, id);
      });
      return 0;
    });
    Run();
    EXPECT_TRUE(heard) << text;
  }
  EXPECT_EQ(Stats().programs, 0);
}

TEST_P(ClusterTest, ShardsAreJoinedTakenApartCopiedAndReshaped) {
  AddWorker("w0", 2);
  AddWorker("w1", 2);
  SessionId session = Open();
  ArrayId a = *Make(session, 0, 1, 5), b = *Make(session, 1, 1, 6);
  auto joined = On([&](Controller& c) { return c.Assemble(session, Scalar(Devices(0, 2)), {a, b}); });
  ASSERT_TRUE(joined.ok()) << joined.status();
  On([&](Controller& c) { return c.Release(a), c.Release(b), 0; });
  EXPECT_EQ(*Value(*joined, 0), 5);
  EXPECT_EQ(*Value(*joined, 1), 6);
  // To the other worker, swapped; used there before it arrived, and freed before that.
  auto copy = On([&](Controller& c) {
    return c.Copy(session, *joined, {DeviceId(3), DeviceId(2)}, {}, CopySemantics::kShare);
  });
  ASSERT_TRUE(copy.ok()) << copy.status();
  ProgramId program = Compile(session, "", 2, 2);
  auto swapped = On([&](Controller& c) {
    return c.Copy(session, *copy, {DeviceId(2), DeviceId(3)}, {}, CopySemantics::kDonate);
  });
  auto result = Execute(session, program, {*swapped});
  ASSERT_TRUE(result.ok()) << result.status();
  On([&](Controller& c) { return c.Release(*swapped), 0; });
  EXPECT_EQ(*Value(result->outputs[0], 0), 6);
  EXPECT_EQ(*Value(result->outputs[0], 1), 7);
  EXPECT_FALSE(Value(*copy).ok());
  // Straight across the network into a launch.
  auto across = On([&](Controller& c) {
    return c.Copy(session, *joined, {DeviceId(2), DeviceId(3)}, {}, CopySemantics::kShare);
  });
  auto next = Execute(session, program, {*across});
  On([&](Controller& c) { return c.Release(*across), 0; });
  EXPECT_EQ(*Value(next->outputs[0], 1), 7);

  ArraySpec column = Scalar(Devices(0, 2));
  column.dims = {1};
  column.shard_dims = {DimVector{1}};
  auto reshaped = On([&](Controller& c) { return c.Remap(session, *joined, column); });
  ASSERT_TRUE(reshaped.ok());
  EXPECT_EQ(*Value(*reshaped, 1), 6);
  auto parts = On([&](Controller& c) { return c.Disassemble(session, *joined); });
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(*Value((*parts)[1]), 6);
  auto view = On([&](Controller& c) { return c.ViewShard(session, *joined, 1); });
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(*Value(*view), 6);
  EXPECT_FALSE(On([&](Controller& c) { return c.ViewShard(session, *joined, 2); }).ok());
  On([&](Controller& c) { return c.Delete(*joined).ok(); });
  EXPECT_FALSE(Value(*joined).ok());
  EXPECT_FALSE(Value((*parts)[0]).ok()) << "views go with it";
  On([&](Controller& c) { return c.CloseSession(session), 0; });
  EXPECT_EQ(Stats().store_bytes, 0);
  EXPECT_EQ(cluster_.StoreBuffers(), 0);
}

TEST_P(ClusterTest, ALostWorkerFailsExactlyWhatNeededIt) {
  AddWorker("w0", 2);
  AddWorker("w1", 2);
  SessionId session = Open();
  ProgramId on0 = Compile(session, "ms=5 all_reduce", 0, 2), on1 = Compile(session, "ms=5 all_reduce", 2, 2);
  ProgramId both = Compile(session, "ms=5", 0, 4);
  ASSERT_TRUE(compile_status_.ok()) << compile_status_;
  ArrayId x0 = *Make(session, 0, 2, 1), x1 = *Make(session, 2, 2, 1), x = *Make(session, 0, 4, 1);
  auto r0 = Execute(session, on0, {x0});
  auto r1 = Execute(session, on1, {x1});
  auto rb = Execute(session, both, {x});
  auto copy =
      On([&](Controller& c) { return c.Copy(session, r1->outputs[0], Devices(0, 2), {}, CopySemantics::kShare); });
  auto after_copy = Execute(session, on0, {*copy});
  Run(absl::Milliseconds(2));
  cluster_.Kill("w1");
  Run();
  EXPECT_EQ(*Value(r0->outputs[0]), 4);
  for (ArrayId lost : {r1->outputs[0], rb->outputs[0], x1, after_copy->outputs[0]}) {
    EXPECT_THAT(std::string(ReadyStatus(lost).message()), HasSubstr("worker w1 is lost"));
    EXPECT_FALSE(Value(lost).ok());
  }
  EXPECT_TRUE(absl::IsUnavailable(Execute(session, on1, {x1}).status()) ||
              !Execute(session, on1, {x1})->outputs.empty());
  EXPECT_EQ(*Value(Execute(session, on0, {x0})->outputs[0]), 4) << "the others go on";
  EXPECT_EQ(Stats().pending_launches, 0);
  // It comes back under its name and gets its programs again.
  AddWorker("w1", 2);
  EXPECT_EQ(*Value(Execute(session, on1, {*Make(session, 2, 2, 1)})->outputs[0]), 4);
}

TEST_P(ClusterTest, ASilentWorkerIsLostAfterTheTimeout) {
  AddWorker("w0", 1);
  SessionId session = Open();
  ProgramId program = Compile(session, "", 0, 1);
  auto result = Execute(session, program, {*Make(session, 0, 1, 1)});
  EXPECT_EQ(*Value(result->outputs[0]), 2);
  cluster_.network().Silence("w0");
  auto stuck = Execute(session, program, {result->outputs[0]});
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReadyStatus(stuck->outputs[0], absl::Seconds(5))));
  EXPECT_THAT(std::string(ReadyStatus(stuck->outputs[0], absl::Seconds(6)).message()), HasSubstr("silent for"));
}

TEST_P(ClusterTest, AControllerThatWasHeldUpBlamesNobody) {
  AddWorker("w0", 1);
  SessionId session = Open();
  ProgramId program = Compile(session, "", 0, 1);
  auto result = Execute(session, program, {*Make(session, 0, 1, 1)});
  EXPECT_EQ(*Value(result->outputs[0]), 2);
  cluster_.network().Silence("w0");  // what it says waits behind the turn that takes so long
  cluster_.HoldUp(true);
  auto stuck = Execute(session, program, {result->outputs[0]});
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReadyStatus(stuck->outputs[0], absl::Seconds(30))));
  cluster_.HoldUp(false);
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReadyStatus(stuck->outputs[0], absl::Seconds(5))));
  EXPECT_THAT(std::string(ReadyStatus(stuck->outputs[0], absl::Seconds(6)).message()), HasSubstr("silent for"));
}

TEST_P(ClusterTest, SessionsTakeTurnsAndCloseInTheMiddle) {
  AddWorker("w0", 2);
  SessionId a = Open("a"), b = Open("b");
  ProgramId program = Compile(a, "ms=1", 0, 2);
  ASSERT_TRUE(Compile(b, "ms=1", 0, 2) == program);
  ArrayId xa = *Make(a, 0, 2, 0), xb = *Make(b, 0, 2, 100);
  for (int i = 0; i < 40; ++i) {
    auto ra = Execute(a, program, {xa}), rb = Execute(b, program, {xb});
    On([&](Controller& c) { return c.Release(xa), c.Release(xb), 0; });
    xa = ra->outputs[0];
    xb = rb->outputs[0];
  }
  On([&](Controller& c) { return c.CloseSession(a), 0; });
  EXPECT_EQ(*Value(xb, 1), 140);
  EXPECT_FALSE(Value(xa).ok());
  On([&](Controller& c) { return c.CloseSession(b), 0; });
  Statistics stats = Stats();
  EXPECT_EQ(stats.arrays + stats.programs + stats.store_bytes + stats.pending_launches, 0);
  EXPECT_EQ(cluster_.StoreBuffers(), 0);
}

TEST_P(ClusterTest, AProgramStaysForWhoeverStillHasIt) {
  AddWorker("w0", 2);
  constexpr int kSessions = 8;
  for (int last = 0; last < kSessions; last += 3) {
    std::vector<SessionId> sessions;
    ProgramId program;
    for (int i = 0; i < kSessions; ++i) {
      sessions.push_back(Open());
      program = Compile(sessions.back(), "ms=1", 0, 2);
    }
    for (int i = 0; i < kSessions; ++i) {
      if (i == last) continue;
      On([&](Controller& c) { return c.ReleaseProgram(sessions[i], program), c.CloseSession(sessions[i]), 0; });
    }
    auto result = Execute(sessions[last], program, {*Make(sessions[last], 0, 2, 1)});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(*Value(result->outputs[0]), 2);
    On([&](Controller& c) { return c.ReleaseProgram(sessions[last], program), 0; });
    EXPECT_EQ(Stats().programs, 0);
    On([&](Controller& c) { return c.CloseSession(sessions[last]), 0; });
  }
}

TEST_P(ClusterTest, WhatNobodyWantsAnyMoreIsNotCompiled) {
  AddWorker("w0", 1);
  SessionId session = Open();
  const int before = cluster_.compiled();
  On([&](Controller& c) {
    for (int i = 0; i < 5; ++i) {
      CompileRequest request{.artifact = absl::StrCat("ms=", i), .devices = Devices(0, 1), .options = {}};
      const ProgramId program = c.Compile(session, request).first;
      if (i > 0) c.ReleaseProgram(session, program);
    }
    return 0;
  });
  Run();
  EXPECT_EQ(cluster_.compiled(), before + 1);
}

TEST_P(ClusterTest, BadRequestsAreErrors) {
  AddWorker("w0", 2);
  SessionId session = Open();
  EXPECT_TRUE(absl::IsNotFound(Execute(session, ProgramId(99), {}).status()));
  EXPECT_TRUE(absl::IsNotFound(Value(ArrayId(99)).status()));
  auto bytes = std::make_shared<const std::string>("abc");
  auto make = [&](ArraySpec spec, std::vector<HostShard> shards) {
    return On([&](Controller& c) { return c.MakeArray(session, spec, shards); }).status();
  };
  EXPECT_THAT(std::string(make(Scalar(Devices(0, 1)), {{bytes, {0}}}).message()), HasSubstr("3 bytes"));
  EXPECT_THAT(std::string(make(Scalar(Devices(0, 1)), {}).message()), HasSubstr("no host shard"));
  EXPECT_THAT(std::string(make(Scalar(Devices(7, 1)), {}).message()), HasSubstr("no device 7"));
  EXPECT_FALSE(make(Scalar({}), {}).ok());
  ArrayId error = On([&](Controller& c) {
    return *c.MakeErrorArray(session, Scalar(Devices(0, 2)), absl::InternalError("born broken"));
  });
  ProgramId program = Compile(session, "", 0, 2);
  auto result = Execute(session, program, {error});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(ReadyStatus(result->outputs[0]).message(), "born broken");
  ArrayId typeless = On([&](Controller& c) { return *c.MakeErrorArray(session, {}, absl::InternalError("no array")); });
  EXPECT_EQ(ReadyStatus(Execute(session, program, {typeless})->outputs[0]).message(), "no array");
  // Each shard has to be what the program takes, not only the first.
  ArraySpec mixed = Scalar(Devices(0, 2));
  mixed.shard_dims = {DimVector{}, DimVector{1}};
  auto four = std::make_shared<const std::string>(4, 'x');
  const ArrayId odd = *On([&](Controller& c) { return c.MakeArray(session, mixed, {{four, {0}}, {four, {1}}}); });
  EXPECT_THAT(std::string(Execute(session, program, {odd}).status().message()), HasSubstr("has shards of s32[1]"));
  // Shards of the right shape may be other parts of the array.
  const ProgramId split = Compile(session, "elements=4|split", 0, 2);
  ArraySpec turned = Scalar(Devices(0, 2));
  turned.dims = {4};
  turned.shard_dims = {DimVector{2}};
  const auto mesh = std::make_shared<const Mesh>(*Mesh::Make({{"x", 2}}, {1, 0}));
  turned.sharding = Sharding::Replicated(mesh, 1);
  turned.sharding->dims[0].axes = {FullAxis(*mesh, 0)};
  auto eight = std::make_shared<const std::string>(8, 'x');
  const ArrayId other = *On([&](Controller& c) { return c.MakeArray(session, turned, {{eight, {0, 1}}}); });
  EXPECT_THAT(std::string(Execute(session, split, {other}).status().message()), HasSubstr("it is split as"));
  // More than the parts hold would be read from what lies behind them.
  ArraySpec large = Scalar(Devices(0, 1));
  large.dims = {1 << 20};
  large.shard_dims = {DimVector{1 << 20}};
  const ArrayId part = *Make(session, 0, 1, 1);
  EXPECT_THAT(std::string(On([&](Controller& c) { return c.Assemble(session, large, {part}); }).status().message()),
              HasSubstr("part 0 of an assembled array is s32[], its shard s32[1048576]"));
  ArrayId elsewhere = *Make(session, 0, 1, 1);
  EXPECT_THAT(std::string(Execute(session, program, {elsewhere}).status().message()), HasSubstr("other devices"));
  EXPECT_FALSE(Value(elsewhere, 5).ok());
}

}  // namespace
}  // namespace gangway::controller
