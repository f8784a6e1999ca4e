// Ten thousand small programs from 32 clients at once: no error, bounded memory, nothing left.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gtest/gtest.h"
#include "tests/runtime/hand_made.h"
#include "tests/runtime/served_cluster.h"

namespace gangway {
namespace {

constexpr int kClients = 32, kDevices = 4, kCalls = 4, kInFlight = 8;

int Programs() {
  const char* programs = std::getenv("GANGWAY_PROGRAMS");
  return programs == nullptr ? 10'000 : std::atoi(programs);
}

int64_t ResidentMiB() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096 >> 20;
}

// One client: programs of `kCalls` calls each, on values of its own, some ahead of what it has read.
absl::Status Work(ServedCluster& cluster, int number, int programs) {
  GW_ASSIGN_OR_RETURN(client::Client client, cluster.Connect(absl::StrCat("client", number)));
  GW_ASSIGN_OR_RETURN(client::Slice slice, client.MakeSlice({.devices = 1 + number % 2, .island = {}, .policy = ""}));
  const int devices = static_cast<int>(slice.devices.size());
  GW_ASSIGN_OR_RETURN(client::Function step, client.Compile(AllReduceAddOne(devices), slice));
  client::ProgramBuilder builder(1);
  client::Value value = builder.input(0);
  float expected = static_cast<float>(number);
  for (int i = 0; i < kCalls; ++i) {
    GW_ASSIGN_OR_RETURN(std::vector<client::Value> results, builder.Call(step, {value}));
    value = results[0];
    expected = static_cast<float>(devices) * expected + 1;
  }
  builder.Return({value});
  GW_ASSIGN_OR_RETURN(client::Program program, client.Define(builder));
  GW_ASSIGN_OR_RETURN(client::Array x, step.Put(Literal::Scalar(DType::kF32, static_cast<float>(number)), 0));
  std::deque<Future<Literal>> reads;
  auto read = [&]() -> absl::Status {
    GW_ASSIGN_OR_RETURN(Literal got, reads.front().Await(absl::Now() + absl::Minutes(2), "a result"));
    reads.pop_front();
    if (got.values<float>()[0] == expected) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("got ", got.values<float>()[0], ", not ", expected));
  };
  for (int i = 0; i < programs; ++i) {
    GW_ASSIGN_OR_RETURN(std::vector<client::Array> results, program.Run({x}));
    reads.push_back(results[0].Fetch());
    if (reads.size() >= kInFlight) GW_RETURN_IF_ERROR(read());
  }
  while (!reads.empty()) GW_RETURN_IF_ERROR(read());
  return absl::OkStatus();
}

TEST(ManyClientsTest, SmallProgramsAllAtOnce) {
  ServedCluster cluster;
  cluster.AddWorkerThread("w0", kDevices);
  ASSERT_TRUE(cluster.WaitForDevices(kDevices));
  int64_t resident[3];
  for (int lap = 0; lap < 3; ++lap) {  // the first warms up
    std::vector<absl::Status> outcomes(kClients);
    std::vector<std::thread> threads;
    for (int c = 0; c < kClients; ++c) {
      threads.emplace_back([&, c] { outcomes[c] = Work(cluster, c, Programs() / kClients / 2 + 1); });
    }
    for (auto& thread : threads) thread.join();
    for (const absl::Status& outcome : outcomes) EXPECT_EQ(outcome, absl::OkStatus());
    EXPECT_TRUE(cluster.IsEmptySoon());
    resident[lap] = ResidentMiB();
  }
  EXPECT_LT(resident[2] - resident[1], 64) << "MiB more after another five thousand programs";
}

}  // namespace
}  // namespace gangway
