// Random clients, launches, copies, deaths and stalls, drawn from a seed, in simulated time: every question is
// answered, survivors go on, nothing is left over.
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/sim_cluster.h"

namespace gangway {
namespace {

using controller::ArrayId;
using controller::DeviceId;
using controller::ProgramId;
using controller::RuntimeController;
using controller::SessionId;

constexpr int kWorkers = 3, kDevices = 2;  // of each worker

int Seeds() {
  const char* seeds = std::getenv("GANGWAY_CHAOS_SEEDS");
  return seeds == nullptr ? 200 : std::atoi(seeds);
}

class Chaos {
 public:
  explicit Chaos(uint64_t seed) : random_(seed), cluster_(seed) {
    for (int w = 0; w < kWorkers; ++w) {
      cluster_.AddWorker(Name(w), {.devices = kDevices});
      cluster_.RunFor(absl::Milliseconds(10));  // one after the other: device numbers are known
    }
  }

  // Some steps of everything, then peace, then a look at what is left.
  void Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      Step();
      cluster_.RunFor(absl::Microseconds(Draw(20000)));
    }
    for (size_t c = 0; c < clients_.size(); ++c) Close(static_cast<int>(c));
    // They do not know that they are cut off, and keep what they have.
    for (const std::string& worker : silenced_) cluster_.Kill(worker);
    cluster_.RunFor(absl::Seconds(200));  // longer than any deadline
    EXPECT_EQ(asked_, answered_) << "somebody still waits";
    const auto stats = cluster_.On([](RuntimeController& c) { return c.Stats(); });
    EXPECT_EQ(stats.sessions, 0);
    EXPECT_EQ(stats.arrays, 0);
    EXPECT_EQ(stats.programs, 0);
    EXPECT_EQ(stats.pending_launches, 0);
    EXPECT_EQ(cluster_.StoreBuffers(), 0);
  }

  int kills() const { return kills_; }

 private:
  struct Client {
    SessionId session;
    bool open = true;
    std::vector<DeviceId> devices;
    ProgramId program;
    bool compiled = false;
    std::vector<ArrayId> arrays;
  };

  static std::string Name(int worker) { return absl::StrCat("w", worker); }
  int Draw(int below) { return static_cast<int>(random_() % below); }

  void Step() {
    const int kind = Draw(100);
    if (kind < 6) return Open();
    if (kind < 8) return Kill();
    if (kind < 9) return Silence();
    if (kind < 10) return cluster_.Leave(Name(Draw(kWorkers)));
    if (kind < 14) return Return();
    if (clients_.empty()) return;
    const int client = Draw(static_cast<int>(clients_.size()));
    if (!clients_[client].open) return;
    if (kind < 16) return Close(client);
    if (kind < 35) return Put(client);
    if (kind < 75) return Launch(client);
    if (kind < 85) return Copy(client);
    Ask(client);
  }

  void Open() {
    Client client;
    const int first = Draw(kWorkers * kDevices), count = 1 + Draw(kWorkers * kDevices - first);
    for (int d = first; d < first + count; ++d) client.devices.push_back(DeviceId(d));
    const size_t index = clients_.size();
    client.session = cluster_.On([](RuntimeController& c) { return c.OpenSession({"chaos", "", 1}); });
    controller::CompileRequest request;
    request.artifact = absl::StrCat("ms=", Draw(5), Draw(2) == 0 ? " all_reduce" : "");
    request.devices = client.devices;
    request.options.num_partitions = count;
    ++asked_;
    auto [id, ready] = cluster_.On([&](RuntimeController& c) { return c.Compile(client.session, request); });
    client.program = id;
    clients_.push_back(client);
    ready.OnReady([this, index](const auto& program) {
      ++answered_;
      clients_[index].compiled = program.ok();
    });
  }
  void Close(int index) {
    Client& client = clients_[index];
    if (!std::exchange(client.open, false)) return;
    cluster_.On([&](RuntimeController& c) { return c.CloseSession(client.session), 0; });
  }
  void Kill() {
    ++kills_;
    cluster_.Kill(Name(Draw(kWorkers)));
  }
  void Silence() {
    ++kills_;
    const std::string worker = Name(Draw(kWorkers));
    cluster_.network().Silence(worker);
    silenced_.insert(worker);
  }
  void Return() {
    const std::string worker = Name(Draw(kWorkers));
    cluster_.AddWorker(worker, {.devices = kDevices});
    silenced_.erase(worker);
  }

  void Put(int index) {
    Client& client = clients_[index];
    controller::ArraySpec spec;
    spec.dtype = DType::kS32;
    spec.devices = client.devices;
    spec.shard_dims = {DimVector{}};
    std::vector<int> all;
    for (size_t i = 0; i < client.devices.size(); ++i) all.push_back(static_cast<int>(i));
    auto bytes = std::make_shared<const std::string>(4, '\1');
    auto array = cluster_.On([&](RuntimeController& c) { return c.MakeArray(client.session, spec, {{bytes, all}}); });
    if (array.ok()) client.arrays.push_back(*array);
  }
  void Launch(int index) {
    Client& client = clients_[index];
    if (!client.compiled || client.arrays.empty()) return;
    const ArrayId argument = client.arrays[Draw(static_cast<int>(client.arrays.size()))];
    auto result =
        cluster_.On([&](RuntimeController& c) { return c.Execute(client.session, client.program, {argument}, {}); });
    if (!result.ok()) return;
    client.arrays.push_back(result->outputs[0]);
    ++asked_;
    result->done.OnReady([this](const auto&) { ++answered_; });
  }
  // To the same devices in another order, over the workers.
  void Copy(int index) {
    Client& client = clients_[index];
    if (client.arrays.empty()) return;
    const ArrayId source = client.arrays[Draw(static_cast<int>(client.arrays.size()))];
    std::vector<DeviceId> devices = client.devices;
    std::shuffle(devices.begin(), devices.end(), random_);
    auto copy = cluster_.On([&](RuntimeController& c) {
      return c.Copy(client.session, source, devices, {}, controller::CopySemantics::kCopy);
    });
    if (copy.ok()) Await(*copy);
    if (copy.ok()) cluster_.On([&](RuntimeController& c) { return c.Release(*copy), 0; });
  }
  void Ask(int index) {
    Client& client = clients_[index];
    if (client.arrays.empty()) return;
    const size_t at = Draw(static_cast<int>(client.arrays.size()));
    const ArrayId array = client.arrays[at];
    Await(array);
    ++asked_;
    cluster_.On([&](RuntimeController& c) {
      c.Fetch(array, 0).OnReady([this](const auto&) { ++answered_; });
      return 0;
    });
    if (Draw(2) == 0) return;
    cluster_.On([&](RuntimeController& c) { return c.Release(array), 0; });
    client.arrays.erase(client.arrays.begin() + static_cast<int64_t>(at));
  }
  void Await(ArrayId array) {
    ++asked_;
    cluster_.On([&](RuntimeController& c) {
      c.Ready(array).OnReady([this](const auto&) { ++answered_; });
      return 0;
    });
  }

  std::mt19937_64 random_;
  SimCluster cluster_;
  std::vector<Client> clients_;
  std::set<std::string> silenced_;
  int asked_ = 0, answered_ = 0, kills_ = 0;
};

TEST(ChaosTest, EveryQuestionIsAnsweredAndNothingIsLeft) {
  int kills = 0;
  for (int seed = 0; seed < Seeds(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Chaos chaos(seed);
    chaos.Run(200);
    kills += chaos.kills();
    if (testing::Test::HasFailure()) break;
  }
  RecordProperty("kills", kills);
  EXPECT_GT(kills, Seeds()) << "too peaceful";
}

}  // namespace
}  // namespace gangway
