// Real processes killed, stopped and continued while clients work: every wait ends, errors name the worker, those who
// do not need it go on, everybody works again in the end, nothing is left.
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/runtime/busy_client.h"
#include "tests/runtime/hand_made.h"
#include "tests/runtime/served_cluster.h"
#include "tests/runtime/worker_processes.h"

namespace gangway {
namespace {

// A worker that is silent for twice as long is lost: long enough that a busy machine does not look like a death.
constexpr absl::Duration kHeartbeat = absl::Seconds(2);
constexpr int kWorkers = 3, kDevices = 2;  // of each; the first worker is spared

int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

// GANGWAY_KILLS=N does so N times, in the order of GANGWAY_CHAOS_SEED.
TEST(KilledProcessesTest, SurvivorsGoOnAndErrorsNameTheDead) {
  const int kills = FromEnvironment("GANGWAY_KILLS", 3);
  std::mt19937 random(FromEnvironment("GANGWAY_CHAOS_SEED", 1));
  const std::string artifact = testing::TempDir() + "/step.hlo";
  std::ofstream(artifact) << AllReduceAddOne(1);
  controller::ControllerOptions options;
  options.heartbeat = kHeartbeat;
  ServedCluster cluster(options);
  WorkerProcesses workers(cluster, kWorkers, kDevices);
  ASSERT_TRUE(cluster.WaitForDevices(kWorkers * kDevices));
  {
    BusyClient safe(cluster, {0, 1}), second(cluster, {2, 3}), third(cluster, {4, 5}), both(cluster, {2, 3, 4, 5});
    const auto all = {&safe, &second, &third, &both};
    for (const BusyClient* busy : all) ASSERT_TRUE(busy->Succeeds()) << busy->wrong();
    for (int event = 0; event < kills; ++event) {
      const int victim = 1 + static_cast<int>(random() % (kWorkers - 1));
      switch (event % 3) {
        case 0:
          workers.Kill(victim);
          absl::SleepFor(absl::Milliseconds(random() % 300));
          workers.Start(victim);
          break;
        case 1:  // long enough to be given up, or not
          kill(workers[victim], SIGSTOP);
          absl::SleepFor(kHeartbeat * static_cast<int>(1 + random() % 3));
          kill(workers[victim], SIGCONT);
          break;
        default: {
          const pid_t client = Spawn({CHAIN_BINARY, cluster.address(), artifact, "1"});
          absl::SleepFor(absl::Milliseconds(random() % 200));
          Kill(client);
        }
      }
      absl::SleepFor(absl::Milliseconds(random() % 500));
    }
    for (const BusyClient* busy : all) {
      EXPECT_TRUE(busy->Succeeds()) << "not since the last death";
      EXPECT_EQ(busy->wrong(), "");
    }
    EXPECT_EQ(safe.failures(), 0) << "it needed none of the dead";
    EXPECT_GT(second.failures() + third.failures() + both.failures(), 0) << "too peaceful";
  }
  EXPECT_TRUE(cluster.IsEmptySoon());
}

}  // namespace
}  // namespace gangway
