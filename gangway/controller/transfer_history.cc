#include "gangway/controller/transfer_history.h"

#include <utility>

namespace gangway::controller {

void TransferHistory::Keep(const TransferSample& sample) {
  samples_.push_back(sample);
  if (samples_.size() > capacity_) samples_.pop_front();
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
