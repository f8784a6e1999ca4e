#include "gangway/controller/transfer_history.h"

#include <algorithm>
#include <utility>

namespace gangway::controller {

void TransferHistory::Keep(TransferSample sample) {
  sample.number = next_++;
  samples_.push_back(std::move(sample));
  if (samples_.size() > capacity_) samples_.pop_front();
}

std::vector<TransferSample> TransferHistory::After(uint64_t after) const {
  auto first = std::partition_point(samples_.begin(), samples_.end(),
                                    [after](const TransferSample& sample) { return sample.number <= after; });
  return {first, samples_.end()};
}

void TransferHistory::Add(TransferSample sample) {
  if (capacity_ == 0) return;
  auto [entry, first] = last_.try_emplace(sample.worker);
  Last& last = entry->second;
  const TransferSample& before = last.sample;
  if (!first && before.sent_bytes == sample.sent_bytes && before.received_bytes == sample.received_bytes) {
    last = {std::move(sample), /*kept=*/false};
    return;
  }
  if (!first && last.kept && sample.when < before.when + kPeriod) return;
  if (!first && !last.kept) Keep(before);
  Keep(sample);
  last = {std::move(sample), /*kept=*/true};
}

}  // namespace gangway::controller
