// Real processes killed, stopped and continued at random while clients work: every wait ends, errors name the worker,
// those who do not need it go on, everybody works again in the end, nothing is left.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "gtest/gtest.h"
#include "tests/runtime/hand_made.h"
#include "tests/runtime/served_cluster.h"

extern char** environ;

namespace gangway {
namespace {

constexpr absl::Duration kHeartbeat = absl::Milliseconds(500);
constexpr absl::Duration kPatience = absl::Seconds(30);  // no wait may be longer
constexpr int kWorkers = 3, kDevices = 2;                // of each; the first worker is spared

int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

pid_t Spawn(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = -1;
  return posix_spawn(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0 ? child : -1;
}

void Kill(pid_t process) {
  if (process <= 0) return;
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
}

// Worker processes; they end with it.
struct Workers {
  std::vector<pid_t> ids;
  ~Workers() {
    for (pid_t id : ids) Kill(id);
  }
  pid_t& operator[](int worker) { return ids[worker]; }
};

std::string Name(int worker) { return absl::StrCat("w", worker); }

pid_t StartWorker(const ServedCluster& cluster, int worker) {
  return Spawn({GANGWAY_BINARY, "worker", "--controller", cluster.worker_address(), "--name", Name(worker), "--rank",
                absl::StrCat(worker), "--devices", absl::StrCat(kDevices), "--plugin", GANGWAY_CPU_PLUGIN,
                "--log-level", "error"});
}

// A client that computes on some devices all the time, until stopped.
class Busy {
 public:
  Busy(ServedCluster& cluster, std::vector<int> devices)
      : cluster_(cluster), devices_(std::move(devices)), thread_([this] { Work(); }) {}
  ~Busy() {
    stop_ = true;
    thread_.join();
  }
  int successes() const { return successes_; }
  int failures() const { return failures_; }
  // An outcome that is neither right nor an error that names a worker.
  std::string wrong() const {
    absl::MutexLock lock(&mutex_);
    return wrong_;
  }

 private:
  void Work() {
    const absl::Status status = Connected();
    if (!status.ok()) Wrong(status.ToString());
  }
  absl::Status Connected() {
    GW_ASSIGN_OR_RETURN(client::Client client, cluster_.Connect(absl::StrCat("busy on device ", devices_[0])));
    const int count = static_cast<int>(devices_.size());
    GW_ASSIGN_OR_RETURN(client::Function step, client.Compile(AllReduceAddOne(count), {devices_}));
    while (!stop_) {
      const absl::Status outcome = Round(step, static_cast<float>(count));
      if (outcome.ok()) {
        ++successes_;
        continue;
      }
      ++failures_;
      const bool named = outcome.message().find("worker w") != std::string::npos;
      if (!named || absl::IsDeadlineExceeded(outcome)) Wrong(outcome.ToString());
      absl::SleepFor(absl::Milliseconds(20));
    }
    return absl::OkStatus();
  }
  // Three calls, each on the result of the last.
  static absl::Status Round(const client::Function& step, float devices) {
    GW_ASSIGN_OR_RETURN(client::Array x, step.Put(Literal::Scalar(DType::kF32, 1.0f), 0));
    float expected = 1;
    for (int i = 0; i < 3; ++i) {
      GW_ASSIGN_OR_RETURN(std::vector<client::Array> results, step.Call({x}));
      x = results[0];
      expected = devices * expected + 1;
    }
    GW_ASSIGN_OR_RETURN(Literal got, x.Fetch().Await(absl::Now() + kPatience, "a result, which hangs"));
    if (got.values<float>()[0] == expected) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("got ", got.values<float>()[0], ", not ", expected));
  }
  void Wrong(std::string what) {
    absl::MutexLock lock(&mutex_);
    if (wrong_.empty()) wrong_ = std::move(what);
  }

  ServedCluster& cluster_;
  const std::vector<int> devices_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> successes_ = 0, failures_ = 0;
  mutable absl::Mutex mutex_;
  std::string wrong_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Whether it gets something done within the patience.
bool Succeeds(const Busy& busy) {
  const int before = busy.successes();
  const absl::Time end = absl::Now() + kPatience;
  while (busy.successes() < before + 2 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(10));
  return busy.successes() >= before + 2;
}

TEST(KilledProcessesTest, SurvivorsGoOnAndErrorsNameTheDead) {
  const int kills = FromEnvironment("GANGWAY_KILLS", 0);
  if (kills == 0) GTEST_SKIP() << "GANGWAY_KILLS=N kills, stops and continues N times";
  std::mt19937 random(FromEnvironment("GANGWAY_CHAOS_SEED", 1));
  const std::string artifact = testing::TempDir() + "/step.hlo";
  std::ofstream(artifact) << AllReduceAddOne(1);
  controller::ControllerOptions options;
  options.heartbeat = kHeartbeat;
  ServedCluster cluster(options);
  Workers workers;
  for (int w = 0; w < kWorkers; ++w) workers.ids.push_back(StartWorker(cluster, w));
  ASSERT_TRUE(cluster.WaitForDevices(kWorkers * kDevices));
  {
    Busy safe(cluster, {0, 1}), second(cluster, {2, 3}), third(cluster, {4, 5}), both(cluster, {2, 3, 4, 5});
    for (const Busy* busy : {&safe, &second, &third, &both}) ASSERT_TRUE(Succeeds(*busy)) << busy->wrong();
    for (int event = 0; event < kills; ++event) {
      const int victim = 1 + static_cast<int>(random() % (kWorkers - 1));
      const int kind = static_cast<int>(random() % 3);
      if (kind == 0) {
        Kill(workers[victim]);
        absl::SleepFor(absl::Milliseconds(random() % 300));
        workers[victim] = StartWorker(cluster, victim);
      } else if (kind == 1) {  // long enough to be given up, or not
        kill(workers[victim], SIGSTOP);
        absl::SleepFor(kHeartbeat * static_cast<int>(1 + random() % 4));
        kill(workers[victim], SIGCONT);
      } else {
        const pid_t chain = Spawn({CHAIN_BINARY, cluster.address(), artifact, "1"});
        absl::SleepFor(absl::Milliseconds(random() % 200));
        Kill(chain);
      }
      absl::SleepFor(absl::Milliseconds(random() % 500));
    }
    for (const Busy* busy : {&safe, &second, &third, &both}) {
      EXPECT_TRUE(Succeeds(*busy)) << "not since the last death";
      EXPECT_EQ(busy->wrong(), "");
    }
    EXPECT_EQ(safe.failures(), 0) << "it needed none of the dead";
    EXPECT_GT(second.failures() + third.failures() + both.failures(), 0) << "too peaceful";
  }
  EXPECT_TRUE(cluster.IsEmptySoon());
}

}  // namespace
}  // namespace gangway
