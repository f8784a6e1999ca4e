#include "gangway/collective/crew.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace gangway::collective {
namespace {

// A wake-up of a sleeping thread costs 5 to 10 us on both sides: less queued work than this stays on the thread that
// has it.
constexpr int64_t kWorthWakingNs = 150000;

// XLA's own threads flush denormals to zero. A device's program may go on here, and its values must not depend on the
// thread it happens to run on.
void FlushDenormals() {
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  asm volatile("msr fpcr, %0" ::"r"(fpcr | (uint64_t{1} << 24)));
#endif
}

}  // namespace

struct Crew::State {
  explicit State(int limit) : limit(limit) {}

  // More would only take the cores from each other.
  const size_t limit;
  absl::Mutex mutex;
  absl::CondVar work;
  std::deque<Job> jobs ABSL_GUARDED_BY(mutex);
  // Few: at most the helpers and the device threads that brought work.
  std::vector<std::thread::id> serving ABSL_GUARDED_BY(mutex);
  int idle ABSL_GUARDED_BY(mutex) = 0;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::shared_ptr<net::Fabric> sent_for ABSL_GUARDED_BY(mutex);  // where something is to be looked out for
  bool looking_out ABSL_GUARDED_BY(mutex) = false;
  // Running mean of a job's duration; decides whether helpers are woken.
  int64_t mean_ns ABSL_GUARDED_BY(mutex) = 0;

  bool WorthWaking() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return idle > 0 && mean_ns * static_cast<int64_t>(jobs.size()) > kWorthWakingNs;
  }

  void Serve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const std::thread::id self = std::this_thread::get_id();
    serving.push_back(self);
    while (!jobs.empty()) {
      {
        Job job = std::move(jobs.front());
        jobs.pop_front();
        if (WorthWaking()) work.Signal();
        mutex.Unlock();
        const int64_t start = absl::GetCurrentTimeNanos();
        job.run(job.status);
        job = Job();  // what the job held goes before the lock is taken again
        const int64_t took = absl::GetCurrentTimeNanos() - start;
        mutex.Lock();
        mean_ns += (took - mean_ns) / 8;
      }
    }
    serving.erase(std::find(serving.begin(), serving.end(), self));
  }

  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return jobs.empty() || serving.size() >= limit; }

  // True when somebody looked out.
  bool LookOut(absl::FunctionRef<bool()> enough) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (sent_for == nullptr || looking_out) return false;
    looking_out = true;
    std::shared_ptr<net::Fabric> fabric = std::exchange(sent_for, nullptr);
    mutex.Unlock();
    fabric->LookOut([&] {
      {
        absl::MutexLock lock(&mutex);
        if (!jobs.empty() || stopping) return true;
      }
      return enough();
    });
    fabric.reset();
    mutex.Lock();
    looking_out = false;
    return true;
  }

  void Help() {
    absl::MutexLock lock(&mutex);
    while (true) {
      while (Idle() && !stopping) {
        if (LookOut([] { return false; })) continue;
        ++idle;
        work.Wait(&mutex);
        --idle;
      }
      if (jobs.empty() && stopping) return;
      Serve();
    }
  }

  // Wakes a helper where none is about to see what there is.
  void WakeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (idle > 0 && serving.empty() && !looking_out) work.Signal();
  }
};

Crew::Crew(int helpers) : helpers_(std::max(helpers, 0)), state_(std::make_shared<State>(std::max(helpers, 1))) {
  for (int i = 0; i < helpers_; ++i) {
    threads_.emplace_back([state = state_] {
      FlushDenormals();
      state->Help();
    });
    pthread_setname_np(threads_.back().native_handle(), "gangway-crew");
  }
}

Crew::~Crew() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
    state_->work.SignalAll();
  }
  for (std::thread& thread : threads_) {
    // The last job a helper runs may hold the last reference to the crew.
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void Crew::Run(absl::InlinedVector<Job, 8> jobs, bool spread) {
  absl::MutexLock lock(&state_->mutex);
  for (Job& job : jobs) state_->jobs.push_back(std::move(job));
  const auto& serving = state_->serving;
  if (serving.size() >= state_->limit) return;
  if (std::find(serving.begin(), serving.end(), std::this_thread::get_id()) != serving.end()) return;
  // What this thread was doing goes on when it returns: below long jobs it would be held up until the last of them.
  if (state_->WorthWaking()) return state_->work.Signal();
  if (spread && state_->idle > 0) state_->work.Signal();
  state_->Serve();
}

void Crew::Hand(absl::InlinedVector<Job, 8> jobs) {
  if (helpers_ == 0) return Run(std::move(jobs), /*spread=*/false);
  absl::MutexLock lock(&state_->mutex);
  for (Job& job : jobs) state_->jobs.push_back(std::move(job));
  state_->WakeOne();
}

void Crew::SentFor(std::shared_ptr<net::Fabric> fabric) {
  absl::MutexLock lock(&state_->mutex);
  state_->sent_for = std::move(fabric);
}

void Crew::LookOut(absl::FunctionRef<bool()> enough) {
  absl::MutexLock lock(&state_->mutex);
  state_->LookOut(enough);
  if (!state_->Idle()) state_->Serve();
}

}  // namespace gangway::collective
