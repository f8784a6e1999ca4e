// How many bytes the workers have sent to each other, over the last while.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "gangway/controller/observation.h"

namespace gangway::controller {

// Keeps a bounded number of samples: of each worker one in `kPeriod` at most while its counts change, and the last
// before they change again, so that a pause is none of the time that what follows took. Not thread-safe.
class TransferHistory {
 public:
  static constexpr absl::Duration kPeriod = absl::Milliseconds(100);

  explicit TransferHistory(size_t capacity) : capacity_(capacity) {}

  // What the worker's counts are at that time, which is none before the last; they start again when it comes back.
  void Add(TransferSample sample);
  // Those with a number above `after`, oldest first; earlier ones may be forgotten already.
  std::vector<TransferSample> After(uint64_t after) const;

 private:
  struct Last {
    TransferSample sample;
    bool kept = false;
  };
  void Keep(TransferSample sample);

  const size_t capacity_;
  uint64_t next_ = 1;
  std::deque<TransferSample> samples_;
  absl::flat_hash_map<std::string, Last> last_;  // by worker
};

}  // namespace gangway::controller
