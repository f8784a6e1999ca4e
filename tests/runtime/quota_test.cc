// Quotas of tenants, over a cluster in simulated time: what is beyond them is refused by name, and disturbs nobody.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/sim_cluster.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::DeviceId;
using controller::ProgramId;
using controller::RuntimeController;
using controller::SessionId;
using controller::Tenant;
using controller::TenantTable;
using testing::Contains;
using testing::HasSubstr;

constexpr int kElements = 1024;
constexpr int64_t kArray = kElements * 4;  // bytes on each device

class QuotaTest : public testing::TestWithParam<uint64_t> {
 protected:
  // A cluster on which red has a quota and blue none.
  template <typename T>
  void Start(T Tenant::*quota, T value, controller::SessionLimits limits = {}) {
    Tenant red{.name = "red", .token = "red"};
    red.*quota = value;
    SimClusterOptions options{.seed = GetParam()};
    options.session = limits;
    options.tenants = *TenantTable::Make({red, {.name = "blue", .token = "blue"}});
    options.log = [this](const std::string& line) { log_.push_back(line); };
    cluster_ = std::make_unique<SimCluster>(std::move(options));
    cluster_->AddWorker("w0", {.devices = 4});
    cluster_->RunFor(absl::Milliseconds(10));
  }
  SessionId Open(const std::string& token) {
    return cluster_->On([&](RuntimeController& c) {
      controller::SessionInfo info;
      info.name = "of " + token;
      info.token = token;
      EXPECT_TRUE(c.Admit(&info).ok());
      return c.OpenSession(info);
    });
  }
  absl::StatusOr<std::vector<DeviceId>> Slice(SessionId session, int devices) {
    resource::SliceRequest request;
    request.devices = devices;
    return cluster_->On([&](RuntimeController& c) { return c.MakeSlice(session, request); });
  }
  // x -> x + 1 on the first devices.
  absl::StatusOr<ProgramId> Compile(SessionId session, int devices, const std::string& words = "") {
    controller::CompileRequest request;
    request.artifact = absl::StrCat("elements=", kElements, " ", words);
    for (int i = 0; i < devices; ++i) request.devices.push_back(DeviceId(i));
    request.options.num_partitions = devices;
    auto [id, ready] = cluster_->On([&](RuntimeController& c) { return c.Compile(session, request); });
    cluster_->RunFor(absl::Milliseconds(10));
    absl::Status status = ready.Await(absl::Now(), "the program").status();
    if (!status.ok()) return status;
    return id;
  }
  ArrayId Make(SessionId session, int32_t value) {
    return *cluster_->Put(session, Shape(DType::kS32, {kElements}), {DeviceId(0)}, value);
  }
  absl::StatusOr<ArrayId> Run(SessionId session, ProgramId program, ArrayId argument) {
    auto result = cluster_->On([&](RuntimeController& c) { return c.Execute(session, program, {argument}, {}); });
    if (!result.ok()) return result.status();
    return result->outputs[0];
  }
  void Release(ArrayId array) {
    cluster_->On([&](RuntimeController& c) { return c.Release(array), 0; });
  }
  // A value that each of `times` programs takes from the one before: never two arrays that a client keeps.
  void DonateAlong(SessionId session, int times) {
    ProgramId program = *Compile(session, 1, "|donate=0");
    ArrayId x = Make(session, 0);
    for (int i = 0; i < times; ++i) {
      ArrayId y = *Run(session, program, x);
      Release(x);
      x = y;
    }
    EXPECT_EQ(*Value(x), times);
  }
  absl::StatusOr<int32_t> Value(ArrayId array) { return cluster_->Value(array, 0, absl::Seconds(1)); }

  std::vector<std::string> log_;
  std::unique_ptr<SimCluster> cluster_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, QuotaTest, testing::Range<uint64_t>(0, 5));

TEST_P(QuotaTest, BytesAreThoseOfAllSessionsTogether) {
  Start(&Tenant::max_bytes, 2 * kArray);
  SessionId a = Open("red"), b = Open("red"), other = Open("blue");
  ArrayId first = Make(a, 1), second = Make(b, 2);
  ArrayId third = Make(a, 3);
  const absl::Status refused = Value(third).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("upload: tenant red: takes 4.00 KiB; of the 8.00 KiB it may have, 8.00 KiB are taken"));
  EXPECT_THAT(log_, Contains(HasSubstr("refused: tenant red: takes 4.00 KiB")));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(*Value(Make(other, i)), i) << "others are not disturbed";
  EXPECT_EQ(*Value(first), 1);
  Release(second);
  EXPECT_EQ(*Value(Make(a, 4)), 4) << "what was let go can be had again";
}

TEST_P(QuotaTest, WhatIsDonatedMakesRoomForWhatComesOfIt) {
  Start(&Tenant::max_bytes, kArray);
  DonateAlong(Open("red"), 20);
}

TEST_P(QuotaTest, WhatFollowsARefusedArrayFailsWithIt) {
  Start(&Tenant::max_bytes, kArray);
  SessionId session = Open("red");
  ProgramId program = *Compile(session, 1);
  ArrayId x = Make(session, 0);
  ArrayId y = *Run(session, program, x), z = *Run(session, program, y);
  EXPECT_THAT(std::string(Value(z).status().message()), HasSubstr("tenant red: takes"));
  EXPECT_EQ(*Value(x), 0) << "the session goes on";
}

TEST_P(QuotaTest, DevicesAreThoseOfProgramsAndSlices) {
  Start(&Tenant::max_devices, 2);
  SessionId a = Open("red"), b = Open("red"), other = Open("blue");
  ASSERT_TRUE(Compile(a, 2).ok());
  const absl::Status refused = Compile(b, 3).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("tenant red: programs and slices on 3 devices, it may have"));
  const absl::Status slice = Slice(b, 3).status();
  EXPECT_THAT(std::string(slice.message()), HasSubstr("slice: tenant red"));
  EXPECT_TRUE(Compile(other, 4).ok());
  cluster_->On([&](RuntimeController& c) { return c.CloseSession(a), 0; });
  EXPECT_TRUE(Slice(b, 2).ok());
}

TEST_P(QuotaTest, QueuedProgramsAreCountedUntilTheyAreOver) {
  Start(&Tenant::max_queued, int64_t{3});
  SessionId session = Open("red"), other = Open("blue");
  ProgramId program = *Compile(session, 1), others = *Compile(other, 1);
  ArrayId x = Make(session, 0), y = Make(other, 0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Run(session, program, x).ok());
  const absl::Status refused = Run(session, program, x).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("tenant red: 3 programs are queued or run"));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Run(other, others, y).ok());
  cluster_->RunFor(absl::Seconds(1));
  EXPECT_TRUE(Run(session, program, x).ok());
}

TEST_P(QuotaTest, ArraysAreCountedUntilTheyAreLetGo) {
  Start(&Tenant::max_arrays, int64_t{4});
  SessionId a = Open("red"), b = Open("red"), other = Open("blue");
  ProgramId program = *Compile(a, 1);
  ArrayId x = Make(a, 1), y = Make(b, 2), z = *Run(a, program, x);
  ArrayId view = *cluster_->On([&](RuntimeController& c) { return c.ViewShard(b, y, 0); });
  const absl::Status refused = Run(a, program, x).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("tenant red: keeps 4 arrays, and 1 more is beyond its max_arrays of 4"));
  EXPECT_THAT(log_, Contains(HasSubstr("refused: tenant red: keeps 4 arrays")));
  const std::vector<std::function<absl::Status(RuntimeController&)>> others = {
      [&](auto& c) { return c.MakeArray(b, {}, {}).status(); },
      [&](auto& c) { return c.MakeErrorArray(b, {}, absl::AbortedError("failed")).status(); },
      [&](auto& c) { return c.Disassemble(b, y).status(); },
      [&](auto& c) { return c.Copy(b, y, {DeviceId(1)}, {}, controller::CopySemantics::kCopy).status(); }};
  for (const auto& make : others) EXPECT_FALSE(cluster_->On(make).ok());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(*Value(Make(other, i)), i) << "others are not disturbed";
  EXPECT_EQ(*Value(z), 2) << "nor is what it has";
  cluster_->On([&](RuntimeController& c) { return c.Delete(z); }).IgnoreError();
  EXPECT_FALSE(Run(a, program, x).ok()) << "its handle is still there";
  Release(z);
  EXPECT_EQ(*Value(*Run(a, program, x)), 2);
  cluster_->On([&](RuntimeController& c) { return c.CloseSession(b), 0; });
  EXPECT_EQ(*Value(*Run(a, program, x)), 2) << "what a session kept goes with it";
  Release(view);  // of the session that is gone
}

TEST_P(QuotaTest, DonationTakesNoMoreArraysThanClientsKeep) {
  Start(&Tenant::max_arrays, int64_t{2});
  DonateAlong(Open("red"), 20);
}

TEST_P(QuotaTest, ProgramsAreCountedUntilTheyAreLetGo) {
  Start(&Tenant::max_programs, int64_t{2});
  SessionId a = Open("red"), b = Open("red"), other = Open("blue");
  ProgramId first = *Compile(a, 1);
  ASSERT_TRUE(Compile(b, 2).ok());
  const absl::Status refused = Compile(b, 1).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("compile: tenant red: keeps 2 programs, and 1 more is beyond its max_programs of 2"));
  for (int devices = 1; devices < 5; ++devices) EXPECT_TRUE(Compile(other, devices).ok());
  cluster_->On([&](RuntimeController& c) { return c.ReleaseProgram(a, first), 0; });
  EXPECT_TRUE(Compile(b, 1).ok());
  EXPECT_FALSE(Compile(a, 1).ok());
  cluster_->On([&](RuntimeController& c) { return c.CloseSession(b), 0; });
  EXPECT_TRUE(Compile(a, 1).ok());
  EXPECT_TRUE(Compile(a, 2).ok());
}

TEST_P(QuotaTest, ProgramsOfTenantsHaveTheirFolders) {
  Start(&Tenant::max_programs, int64_t{0});
  SessionId red = Open("red"), again = Open("red"), blue = Open("blue");
  std::vector<ProgramId> programs = {*Compile(red, 1), *Compile(again, 1), *Compile(blue, 1)};
  EXPECT_EQ(programs[0], programs[1]);
  EXPECT_NE(programs[0], programs[2]) << "which one program cannot have";
  for (auto [program, folder] : {std::pair(programs[0], "red"), std::pair(programs[2], "blue")}) {
    auto source = cluster_->On([&](RuntimeController& c) { return c.Source(absl::StrCat(program.value())); });
    EXPECT_EQ((*source)->options.files, folder);
  }
}

TEST_P(QuotaTest, EverySessionIsBounded) {
  Start(&Tenant::max_arrays, int64_t{0}, {.arrays = 2, .programs = 1, .questions = 3, .slice_devices = 4});
  SessionId session = Open("red"), other = Open("blue");
  ProgramId program = *Compile(session, 1);
  EXPECT_THAT(std::string(Compile(session, 2).status().message()),
              HasSubstr("session of red: keeps 1 programs, and 1 more is beyond the 1 of a session"));
  ArrayId x = Make(session, 1), y = *Run(session, program, x);
  EXPECT_THAT(std::string(Run(session, program, x).status().message()),
              HasSubstr("session of red: keeps 2 arrays, and 1 more is beyond the 2 of a session"));
  ASSERT_TRUE(Slice(session, 4).ok());
  EXPECT_THAT(std::string(Slice(session, 1).status().message()), HasSubstr("session of red: its slices have 4"));
  std::vector<Future<std::shared_ptr<const std::string>>> reads;
  for (int i = 0; i < 4; ++i) reads.push_back(cluster_->On([&](RuntimeController& c) { return c.Fetch(y, 0); }));
  const absl::Status refused = reads[3].Await(absl::Now(), "a refusal, at once").status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("session of red: 3 questions are not answered yet"));
  EXPECT_EQ(*Value(Make(other, 5)), 5);
  cluster_->RunFor(absl::Seconds(1));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reads[i].Await(absl::Now(), "a read").ok());
  EXPECT_EQ(*Value(y), 2) << "once those are answered";
}

TEST_P(QuotaTest, UploadsThatWaitAreBounded) {
  Start(&Tenant::max_arrays, int64_t{0}, {.bytes = 3 * kArray});
  SessionId session = Open("red"), other = Open("blue");
  ProgramId program = *Compile(session, 1), others = *Compile(other, 1);
  ArrayId x = Make(session, 0), y = Make(other, 0);
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(Run(session, program, x).ok());  // more than may be under way
  absl::Status refused;
  int made = 0;
  while (refused.ok() && made < 100) {
    auto array = cluster_->Put(session, Shape(DType::kS32, {kElements}), {DeviceId(0)}, 7);
    refused = array.status();
    made += array.ok() ? 1 : 0;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(made, 3);
  EXPECT_TRUE(Run(other, others, y).ok());
  cluster_->RunFor(absl::Seconds(1));
  EXPECT_EQ(*Value(Make(session, 7)), 7);
}

TEST_P(QuotaTest, BytesThatWaitAreThoseOfAllSessionsTogether) {
  Start(&Tenant::max_host_bytes, 3 * kArray);
  SessionId a = Open("red"), b = Open("red"), other = Open("blue");
  std::vector<ProgramId> programs;
  for (SessionId session : {a, b, other}) programs.push_back(*Compile(session, 1));
  for (auto [session, program] : {std::pair(a, programs[0]), {b, programs[1]}, {other, programs[2]}}) {
    ArrayId x = Make(session, 0);
    for (int i = 0; i < 400; ++i) ASSERT_TRUE(Run(session, program, x).ok());  // more than may be under way
  }
  auto put = [&](SessionId session) {
    return cluster_->Put(session, Shape(DType::kS32, {kElements}), {DeviceId(0)}, 7);
  };
  ASSERT_TRUE(put(a).ok());
  ASSERT_TRUE(put(a).ok());
  ASSERT_TRUE(put(b).ok());
  const absl::Status refused = put(a).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("new array: tenant red: 4.00 KiB more on their way are beyond its max_host_bytes of 12.00 KiB"));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(put(other).ok());
  cluster_->On([&](RuntimeController& c) { return c.CloseSession(b), 0; });
  EXPECT_TRUE(put(a).ok());
  cluster_->RunFor(absl::Seconds(1));
  EXPECT_EQ(*Value(*put(a)), 7);
}

TEST_P(QuotaTest, ALogIsNotFloodedByWhoAsksAgainAndAgain) {
  Start(&Tenant::max_queued, int64_t{1});
  SessionId session = Open("red");
  ProgramId program = *Compile(session, 1);
  ArrayId x = Make(session, 0);
  for (int i = 0; i < 50; ++i) (void)Run(session, program, x);
  int lines = 0;
  for (const std::string& line : log_) lines += line.rfind("refused", 0) == 0 ? 1 : 0;
  EXPECT_EQ(lines, 1);
}

}  // namespace
}  // namespace gangway
