// A worker process that is told to end in peace: what is on its devices moves first, and no client notices.
#include <signal.h>
#include <sys/wait.h>

#include "gtest/gtest.h"
#include "tests/runtime/busy_client.h"
#include "tests/runtime/served_cluster.h"
#include "tests/runtime/worker_processes.h"

namespace gangway {
namespace {

TEST(LeavingProcessTest, SigtermMovesWhatItHasAndEndsIt) {
  constexpr int kWorkers = 3, kDevices = 2;
  ServedCluster cluster;
  WorkerProcesses workers(cluster, kWorkers, kDevices, {"--leave", "120"});
  ASSERT_TRUE(cluster.WaitForDevices(kWorkers * kDevices));
  {
    // Devices 4 and 5, of w2, are nobody's.
    BusyClient one(cluster, {0, 1}), both(cluster, {1, 2, 3});
    const auto all = {&one, &both};
    for (const BusyClient* busy : all) ASSERT_TRUE(busy->Succeeds()) << busy->wrong();
    kill(workers[1], SIGTERM);
    const int status = workers.WaitForEnd(1);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    for (const BusyClient* busy : all) {
      EXPECT_TRUE(busy->Succeeds()) << "not since it left";
      EXPECT_EQ(busy->failures(), 0);
      EXPECT_EQ(busy->wrong(), "");
    }
  }
  EXPECT_TRUE(cluster.IsEmptySoon());
}

}  // namespace
}  // namespace gangway
