// The last launches of a controller, for those who look later.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "gangway/controller/observation.h"

namespace gangway::controller {

// Keeps a bounded number of launches that are over. Not thread-safe.
class LaunchJournal {
 public:
  explicit LaunchJournal(size_t capacity) : capacity_(capacity) {}

  // Whether it remembers any; otherwise launches need only be counted.
  bool keeps() const { return capacity_ > 0; }
  void Count(bool failed);
  // Counts and numbers the launch.
  void Add(LaunchRecord launch);
  // Those with a number above `after`, oldest first; earlier ones may be forgotten already.
  std::vector<LaunchRecord> After(uint64_t after) const;

  int64_t launches() const { return static_cast<int64_t>(next_ - 1); }
  int64_t failed() const { return failed_; }

 private:
  const size_t capacity_;
  uint64_t next_ = 1;
  int64_t failed_ = 0;
  std::deque<LaunchRecord> launches_;
};

}  // namespace gangway::controller
