// The last launches of a controller, for those who look later.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gangway/controller/observation.h"

namespace gangway::controller {

// Records are written once, one after the other, and dropped together.
struct LaunchBlock {
  std::array<LaunchRecord, 256> launches;
};

// Launches that were over when somebody asked. Shares their blocks with the journal: a few pointers, however many there
// are, to be read and dropped on any thread while the journal goes on.
class LaunchList {
 public:
  LaunchList() = default;

  size_t size() const { return last_ - first_; }
  bool empty() const { return size() == 0; }
  // Oldest first.
  void ForEach(absl::FunctionRef<void(const LaunchRecord&)> f) const;

 private:
  friend class LaunchJournal;

  std::vector<std::shared_ptr<const LaunchBlock>> blocks_;
  size_t first_ = 0, last_ = 0;  // positions in the blocks, one after the other
};

// Keeps a bounded number of launches that are over. To remember one allocates nothing, but for a block now and then.
// Not thread-safe.
class LaunchJournal {
 public:
  explicit LaunchJournal(size_t capacity) : capacity_(capacity) {}

  // Whether it remembers any; otherwise launches need only be counted.
  bool keeps() const { return capacity_ > 0; }
  void Count(bool failed);
  // Counts and numbers the launch.
  void Add(LaunchRecord launch);
  // Those with a number above `after`; earlier ones may be forgotten already.
  LaunchList After(uint64_t after) const;

  int64_t launches() const { return static_cast<int64_t>(next_ - 1); }
  int64_t failed() const { return failed_; }

 private:
  const size_t capacity_;
  uint64_t next_ = 1;
  int64_t failed_ = 0;
  uint64_t first_ = 1;  // the number of the first record of the first block
  std::deque<std::shared_ptr<LaunchBlock>> blocks_;
};

}  // namespace gangway::controller
