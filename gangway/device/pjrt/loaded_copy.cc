#include "gangway/device/pjrt/loaded_copy.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gangway/base/status.h"

namespace gangway::device::pjrt {
namespace {

constexpr int kLoadsBetweenLooks = 64;
constexpr int64_t kUsualMapLimit = 65530;

int64_t MapLimit() {
  std::ifstream file("/proc/sys/vm/max_map_count");
  int64_t limit = 0;
  return file >> limit && limit > 0 ? limit : kUsualMapLimit;
}

int64_t MapCount() {
  std::ifstream file("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

}  // namespace

// All copies of the process: the limit is the process's.
class Copies {
 public:
  static Copies& Get() {
    static auto* copies = new Copies;
    return *copies;
  }

  void Add(LoadedCopy* copy) {
    absl::MutexLock lock(&mutex_);
    copies_.insert(copy);
  }
  void Remove(LoadedCopy* copy) {
    absl::MutexLock lock(&mutex_);
    copies_.erase(copy);
  }
  int64_t Tick() { return ++clock_; }

  void BeforeLoad() {
    if (++loads_ % kLoadsBetweenLooks != 0) return;
    if (MapCount() > limit_ / 2) DropOld();
  }

  int DropOld() {
    absl::MutexLock lock(&mutex_);
    std::vector<LoadedCopy*> oldest(copies_.begin(), copies_.end());
    std::sort(oldest.begin(), oldest.end(),
              [](const LoadedCopy* a, const LoadedCopy* b) { return a->last_use_ < b->last_use_; });
    int dropped = 0;
    for (size_t i = 0; i < oldest.size() / 2; ++i) dropped += oldest[i]->DropIfUnused() ? 1 : 0;
    return dropped;
  }

 private:
  const int64_t limit_ = MapLimit();
  std::atomic<int64_t> clock_ = 0;
  std::atomic<int64_t> loads_ = 0;
  absl::Mutex mutex_;
  absl::flat_hash_set<LoadedCopy*> copies_ ABSL_GUARDED_BY(mutex_);
};

LoadedCopy::LoadedCopy(Load load, Unload unload) : load_(std::move(load)), unload_(std::move(unload)) {
  Copies::Get().Add(this);
}

LoadedCopy::~LoadedCopy() {
  Copies::Get().Remove(this);
  absl::MutexLock lock(&mutex_);
  if (handle_ != nullptr) unload_(handle_);
}

absl::StatusOr<LoadedCopy::Use> LoadedCopy::Get() {
  last_use_ = Copies::Get().Tick();
  absl::MutexLock lock(&mutex_);
  if (handle_ == nullptr) {
    Copies::Get().BeforeLoad();
    GW_ASSIGN_OR_RETURN(handle_, load_());
  }
  ++uses_;
  return Use(this, handle_);
}

void LoadedCopy::Release() {
  absl::MutexLock lock(&mutex_);
  --uses_;
}

// Called with all copies locked, hence without waiting: who holds this copy's lock uses it.
bool LoadedCopy::DropIfUnused() {
  if (!mutex_.TryLock()) return false;
  const bool drop = handle_ != nullptr && uses_ == 0;
  if (drop) unload_(std::exchange(handle_, nullptr));
  mutex_.Unlock();
  return drop;
}

int DropOldCopies() { return Copies::Get().DropOld(); }

}  // namespace gangway::device::pjrt
