#include "gangway/collective/gang_keeper.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gangway/collective/crew.h"
#include "gangway/collective/worker_gang.h"

namespace gangway::collective {
namespace {

constexpr absl::Duration kSweepInterval = absl::Seconds(1);

int Helpers(int wanted) {
  return wanted >= 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

const Clock& WallClock() {
  static const SystemClock clock;  // has no state
  return clock;
}

}  // namespace

struct GangKeeper::State {
  explicit State(const KeeperOptions& options)
      : deadline(options.deadline),
        clock(options.clock != nullptr ? *options.clock : WallClock()),
        crew(std::make_shared<Crew>(Helpers(options.helper_threads))) {}

  // Those still alive; forgets the others.
  std::vector<std::shared_ptr<WorkerGang>> Alive() {
    absl::MutexLock lock(&mutex);
    std::vector<std::shared_ptr<WorkerGang>> alive;
    std::erase_if(gangs, [&alive](const std::weak_ptr<WorkerGang>& weak) {
      std::shared_ptr<WorkerGang> gang = weak.lock();
      if (gang == nullptr) return true;
      alive.push_back(std::move(gang));
      return false;
    });
    return alive;
  }

  const absl::Duration deadline;
  const Clock& clock;
  const std::shared_ptr<Crew> crew;
  absl::Mutex mutex;
  std::vector<std::weak_ptr<WorkerGang>> gangs ABSL_GUARDED_BY(mutex);
  size_t forget_at ABSL_GUARDED_BY(mutex) = 64;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::thread sweeper;
};

GangKeeper::GangKeeper(KeeperOptions options) : state_(std::make_unique<State>(options)) {
  state_->sweeper = std::thread([this] {
    while (true) {
      {
        absl::MutexLock lock(&state_->mutex);
        if (state_->mutex.AwaitWithTimeout(absl::Condition(&state_->stopping), kSweepInterval)) return;
      }
      Sweep();
    }
  });
  pthread_setname_np(state_->sweeper.native_handle(), "gangway-sweep");
}

GangKeeper::~GangKeeper() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
  }
  state_->sweeper.join();
  for (const auto& gang : state_->Alive()) gang->Poison(absl::CancelledError("the worker is shutting down"));
}

std::shared_ptr<Gang> GangKeeper::MakeGang(Launch launch, std::shared_ptr<net::Fabric> fabric) {
  auto gang = std::make_shared<WorkerGang>(std::move(launch), state_->crew, std::move(fabric), state_->clock);
  absl::MutexLock lock(&state_->mutex);
  auto& gangs = state_->gangs;
  if (gangs.size() >= state_->forget_at) {
    // Launches are short: most of those made since the last look are gone.
    std::erase_if(gangs, [](const std::weak_ptr<WorkerGang>& weak) { return weak.expired(); });
    state_->forget_at = std::max<size_t>(64, 2 * gangs.size());
  }
  gangs.push_back(gang);
  return gang;
}

void GangKeeper::Sweep() {
  const absl::Time start = state_->clock.Now() - state_->deadline;
  for (const auto& gang : state_->Alive()) gang->ExpireBefore(start);
}

}  // namespace gangway::collective
