// What the controller does for a program grows with the hosts it runs on, and no faster. Counted, not timed.
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/sim_client.h"

namespace {

bool counting = false;
int64_t allocations = 0;

}  // namespace

// Whatever searches, copies or walks more than it must sooner or later allocates more than it must.
[[gnu::noinline]] void* operator new(size_t size) {
  allocations += counting ? 1 : 0;
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gangway {
namespace {

using controller::ArrayId;
using program_api::FunctionRef;

struct Work {
  int64_t turns = 0, allocations = 0, messages = 0;
};

// Counts what the controller does in its turns.
class CountingExecutor final : public Executor {
 public:
  explicit CountingExecutor(SimTimeline& timeline) : timeline_(timeline) {}
  void Post(Task task) override {
    timeline_.executor().Post([this, task = std::move(task)] {
      ++turns;
      counting = in_turn_ = true;
      task();
      counting = in_turn_ = false;
    });
  }
  bool InLoop() const override { return in_turn_; }

  int64_t turns = 0;

 private:
  SimTimeline& timeline_;
  bool in_turn_ = false;
};

// For one program of one gang over all devices of so many hosts, one of a warm stream of them.
Work WorkOnHosts(int hosts) {
  constexpr int kPrograms = 50, kDevices = 2;
  CountingExecutor* executor = nullptr;
  SimCluster cluster({.controller_executor = [&](SimTimeline& timeline) {
    auto made = std::make_unique<CountingExecutor>(timeline);
    executor = made.get();
    return made;
  }});
  for (int h = 0; h < hosts; ++h) {
    cluster.AddWorker(absl::StrCat("host", h), {.devices = kDevices});
    cluster.RunFor(absl::Milliseconds(10));
  }
  SimClient client(cluster, {"client", "", 1});
  const FunctionRef function = client.Compile("ms=1", 0, hosts * kDevices);
  const program_api::GraphRef graph = SimChain({function}, 1);
  const ArrayId input = client.Put(function, 1);
  int done = 0;
  auto run = [&](int programs) {
    for (int i = 0; i < programs; ++i) {
      client.Run(graph, {input}, /*sequential=*/false, [&](const absl::StatusOr<std::vector<ArrayId>>& results) {
        controller::RuntimeController& c = cluster.controller();
        c.Ready((*results)[0]).OnReady([&](const absl::StatusOr<Unit>& ready) { done += ready.ok() ? 1 : 0; });
        c.Release((*results)[0]);
      });
    }
    cluster.RunFor(absl::Seconds(1));
  };
  run(kPrograms);
  const Work before = {executor->turns, allocations, cluster.controller().dispatch_counts().launch_messages};
  run(kPrograms);
  EXPECT_EQ(done, 2 * kPrograms);
  const Work after = {executor->turns, allocations, cluster.controller().dispatch_counts().launch_messages};
  return {(after.turns - before.turns) / kPrograms, (after.allocations - before.allocations) / kPrograms,
          (after.messages - before.messages) / kPrograms};
}

TEST(ScaleTest, WorkGrowsWithTheHostsAndNoFaster) {
  const Work few = WorkOnHosts(8), many = WorkOnHosts(64);
  EXPECT_EQ(few.messages, 8);
  EXPECT_EQ(many.messages, 64) << "one for each worker";
  EXPECT_LE(many.turns, 8 * few.turns);
  EXPECT_LE(many.allocations, 8 * few.allocations);
  EXPECT_LE(many.allocations, 64 * 20) << "for each host";
}

}  // namespace
}  // namespace gangway
