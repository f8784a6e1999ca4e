#include "gangway/controller/launch_journal.h"

#include <algorithm>
#include <utility>

namespace gangway::controller {

void LaunchJournal::Count(bool failed) {
  ++next_;
  failed_ += failed ? 1 : 0;
}

void LaunchJournal::Add(LaunchRecord launch) {
  launch.number = next_;
  Count(!launch.error.empty());
  launches_.push_back(std::move(launch));
  if (launches_.size() > capacity_) launches_.pop_front();
}

std::vector<LaunchRecord> LaunchJournal::After(uint64_t after) const {
  auto first = std::partition_point(launches_.begin(), launches_.end(),
                                    [after](const LaunchRecord& launch) { return launch.number <= after; });
  return {first, launches_.end()};
}

}  // namespace gangway::controller
