// Simulated time: a calendar of events over a seeded executor. The same runtime classes as in production, one thread,
// every run the same for the same seed.
#pragma once

#include <cstdint>
#include <map>
#include <random>

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
    events_.emplace(clock_.Now() + (delay > absl::ZeroDuration() ? delay : absl::ZeroDuration()), std::move(task));
  }

  // Runs what is ready, then the next event, until nothing is left or due before `span` has passed; the clock then
  // stands at the end of the span.
  void RunFor(absl::Duration span) {
    const absl::Time end = clock_.Now() + span;
    executor_.RunUntilIdle();
    while (!events_.empty() && events_.begin()->first <= end) {
      auto first = events_.extract(events_.begin());
      clock_.Advance(first.key() - clock_.Now());
      first.mapped()();
      executor_.RunUntilIdle();
    }
    clock_.Advance(end - clock_.Now());
  }

 private:
  SimExecutor executor_;
  ManualClock clock_;
  std::mt19937_64 random_;
  std::multimap<absl::Time, Task> events_;
};

}  // namespace gangway
