// A trace that is told while it happens.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gangway/controller/controller.h"
#include "gangway/status/trace.h"

namespace gangway::status {

// What a controller remembers behind a launch and a transfer sample.
struct History {
  absl::Time when;
  uint64_t launches = 0;  // since the start: the number of the last
  controller::LaunchList recent;
  std::vector<controller::TransferSample> transfers;
};
// On the controller's loop. NOT_FOUND where nothing is remembered.
absl::StatusOr<History> HistoryAfter(controller::Controller& controller, uint64_t launch, uint64_t transfer);
// What was over, or measured, at `from` or later.
void AddTo(Trace& trace, const History& history, absl::Time from);

// One recording, turn by turn. Each launch is in it once. Not thread-safe.
class Recording {
 public:
  // Counts itself in `all` while it lives; borrows it.
  Recording(std::atomic<int>& all, const History& begin, absl::Duration length);
  ~Recording();

  // False: there are as many already as there may be.
  bool admitted() const { return admitted_; }
  absl::Duration UntilNextTurn(absl::Time now) const;
  // The last launch and transfer sample that it has.
  std::pair<uint64_t, uint64_t> seen() const { return {launch_, transfer_}; }
  // Takes what came after those; returns the next part of the document, never empty. `last`: to its end.
  std::string Add(const History& history, bool last);
  bool over() const { return over_; }

 private:
  std::atomic<int>& all_;
  const bool admitted_;
  const absl::Time end_;
  uint64_t launch_ = 0, transfer_ = 0;
  bool over_ = false;
  Trace trace_;
};

}  // namespace gangway::status
