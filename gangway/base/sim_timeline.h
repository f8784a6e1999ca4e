// Simulated time: a calendar of events over a seeded executor. The same runtime classes as in production, one thread,
// every run the same for the same seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gangway/base/clock.h"
#include "gangway/base/executor.h"

namespace gangway {

// Single-threaded.
class SimTimeline {
 public:
  explicit SimTimeline(uint64_t seed) : executor_(seed), random_(seed * 2654435761u + 1) {}

  SimExecutor& executor() { return executor_; }
  ManualClock& clock() { return clock_; }
  std::mt19937_64& random() { return random_; }
  absl::Duration elapsed() const { return clock_.Now() - absl::UnixEpoch(); }

  // The task runs when the clock has advanced that far; equal times in the order given.
  void After(absl::Duration delay, Task task) {
    events_.push_back({clock_.Now() + std::max(delay, absl::ZeroDuration()), next_++, std::move(task)});
    std::push_heap(events_.begin(), events_.end(), Later);
  }

  // Runs what is ready, then the next event, until nothing is left or due before `span` has passed; the clock then
  // stands at the end of the span.
  void RunFor(absl::Duration span) {
    const absl::Time end = clock_.Now() + span;
    executor_.RunUntilIdle();
    while (!events_.empty() && events_.front().when <= end) {
      std::pop_heap(events_.begin(), events_.end(), Later);
      const Event first = std::move(events_.back());
      events_.pop_back();
      clock_.Advance(first.when - clock_.Now());
      first.task();
      executor_.RunUntilIdle();
    }
    clock_.Advance(end - clock_.Now());
  }

 private:
  struct Event {
    absl::Time when;
    uint64_t order = 0;  // as given
    Task task;
  };
  static bool Later(const Event& a, const Event& b) { return a.when != b.when ? a.when > b.when : a.order > b.order; }

  SimExecutor executor_;
  ManualClock clock_;
  std::mt19937_64 random_;
  std::vector<Event> events_;  // a heap, the next one first: a large cluster has many thousands
  uint64_t next_ = 0;
};

}  // namespace gangway
